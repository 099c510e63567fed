package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Garbage is collected when as much was allocated since the last time as a part of what lives, and no less than room.
// A short run so collects nothing, and one of thousands of jobs needs half as much again as lives, not twice as much.
const (
	room      = 32 << 20
	leastPart = 50      // percent
	firstHeap = 4 << 20 // at which the runtime collects first, at 100 percent
)

// pace sets that, and again after each collection.
func pace() {
	debug.SetGCPercent(100 * room / firstHeap)
	again(nil)
}

// cycle is unreachable, so that the next collection finds it.
type cycle struct{ live []metrics.Sample }

func again(c *cycle) {
	if c == nil {
		c = &cycle{[]metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	} else if metrics.Read(c.live); c.live[0].Value.Kind() == metrics.KindUint64 {
		live := max(c.live[0].Value.Uint64(), 1)
		debug.SetGCPercent(int(min(max(leastPart, 100*room/live), 100*room/firstHeap)))
	}
	runtime.SetFinalizer(c, again)
}
