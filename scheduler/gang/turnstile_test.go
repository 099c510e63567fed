package gang

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// TestTurnstile: all pass once, in the order in which they came, and never more than the limit at a time.
func TestTurnstile(t *testing.T) {
	var passed, want []gangcache.UID
	ts := newTurnstile(func(uid gangcache.UID) { passed = append(passed, uid) })
	for i := range 2*abreast + 1 {
		want = append(want, gangcache.UID(fmt.Sprint(i)))
	}
	ts.enter(want...)
	if len(passed) != abreast {
		t.Fatalf("%d pass at a time, want %d", len(passed), abreast)
	}
	ts.leave("nobody") // a pod without a gang binds too
	ts.leave(want[2*abreast])
	if len(passed) != abreast {
		t.Fatalf("%d pass after others left than those inside", len(passed))
	}
	for _, uid := range want {
		ts.leave(uid)
		ts.leave(uid) // bound, and then its reservation is given up
		if len(ts.in) > abreast {
			t.Fatalf("%d are inside", len(ts.in))
		}
	}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Errorf("who passed (-want +got):\n%s", diff)
	}
	if len(ts.in)+len(ts.queue) > 0 {
		t.Errorf("%d are left inside and %d before it", len(ts.in), len(ts.queue))
	}
}
