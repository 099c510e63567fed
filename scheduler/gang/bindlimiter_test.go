package gang

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// TestBindLimiter: all bind once, in the order in which they were queued, and never more than the limit at a time.
func TestBindLimiter(t *testing.T) {
	var bound, want []gangcache.UID
	l := newBindLimiter(func(uid gangcache.UID) { bound = append(bound, uid) })
	for i := range 2*maxInFlight + 1 {
		want = append(want, gangcache.UID(fmt.Sprint(i)))
	}
	l.add(want...)
	if len(bound) != maxInFlight {
		t.Fatalf("%d bind at a time, want %d", len(bound), maxInFlight)
	}
	l.done("nobody") // a pod without a gang binds too
	l.done(want[2*maxInFlight])
	if len(bound) != maxInFlight {
		t.Fatalf("%d are bound after others than those in flight were done", len(bound))
	}
	for _, uid := range want {
		l.done(uid)
		l.done(uid) // bound, and then its reservation is given up
		if len(l.inFlight) > maxInFlight {
			t.Fatalf("%d are in flight", len(l.inFlight))
		}
	}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("who was bound (-want +got):\n%s", diff)
	}
	if len(l.inFlight)+len(l.queue) > 0 {
		t.Errorf("%d are left in flight and %d in the queue", len(l.inFlight), len(l.queue))
	}
}
