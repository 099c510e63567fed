// Package pace says when a command that imports it collects garbage: one of milliseconds does not, and one of thousands
// of jobs goes by what lives. It does so from its own initialisation on, ahead of most libraries', which fill more than
// the heap at which the runtime would collect first. Where the environment has a GOGC, that holds.
package pace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Garbage is collected when as much was allocated since the last time as a part of what lives, and no less than room:
// thousands of jobs need half as much again as lives, not twice as much.
const (
	roomOfRun     = 32 << 20
	roomOfOverlay = 64 << 20 // nearly all that kustomize allocates is garbage at once
	leastPart     = 50       // percent
	firstHeap     = 4 << 20  // at which the runtime collects first, at 100 percent
)

var room atomic.Uint64

var _ = start()

// start sets the pace, and again after each collection.
func start() struct{} {
	room.Store(roomOfRun)
	if os.Getenv("GOGC") != "" {
		return struct{}{}
	}
	debug.SetGCPercent(100 * roomOfRun / firstHeap)
	again(nil)
	return struct{}{}
}

// Overlay leaves more room for what kustomize does, from the next collection on.
func Overlay() { room.Store(roomOfOverlay) }

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
