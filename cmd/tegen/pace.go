package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Garbage is collected when as much was allocated since the last time as a part of what lives, and no less than room.
// A short run so collects nothing, and one of thousands of jobs needs half as much again as lives, not twice as much.
const (
	roomOfRun     = 32 << 20
	roomOfOverlay = 64 << 20 // nearly all that kustomize allocates is garbage at once
	leastPart     = 50       // percent
	firstHeap     = 4 << 20  // at which the runtime collects first, at 100 percent
)

// room is larger once an overlay is built.
var room atomic.Uint64

// pace sets that, and again after each collection.
func pace() {
	room.Store(roomOfRun)
	debug.SetGCPercent(100 * roomOfRun / firstHeap)
	again(nil)
}

// cycle is unreachable, so that the next collection finds it.
type cycle struct{ live []metrics.Sample }

func again(c *cycle) {
	if c == nil {
		c = &cycle{[]metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	} else if metrics.Read(c.live); c.live[0].Value.Kind() == metrics.KindUint64 {
		live, least := max(c.live[0].Value.Uint64(), 1), room.Load()
		debug.SetGCPercent(int(min(max(leastPart, 100*least/live), 100*least/firstHeap)))
	}
	runtime.SetFinalizer(c, again)
}
