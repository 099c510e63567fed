package tcpstore

import (
	"testing"
	"time"
)

// TestPushPastWaitOfTwo: what is pushed answers the first whose wait it ends. One that waits for another key as well
// does not keep it from those behind.
func TestPushPastWaitOfTwo(t *testing.T) {
	s := NewStore(Bounds{Runs: 4, Keys: 8, RunBytes: 1 << 15, Bytes: 1 << 16, MemberWaits: 4, Waits: 6})
	do := func(m *Member, op Op, value string, keys ...string) Result {
		t.Helper()
		q := Request{Op: op, Keys: keys}
		if value != "" {
			q.Values = [][]byte{[]byte(value)}
		}
		r, err := s.Do(m, q, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	two, one, last, pusher := s.Join(Recent, 2), s.Join(Recent, 1), s.Join(Recent, 1), s.Join(Recent, nil)
	do(two, Wait, "", "/q", "/other")
	do(one, Wait, "", "/q")
	do(last, Wait, "", "/q")
	if woken := do(pusher, QueuePush, "x", "/q").Wake; len(woken) != 1 || woken[0].To != one {
		t.Errorf("a push answers %d, want only the one that waits for nothing else", len(woken))
	}
	if woken := do(pusher, Set, "x", "/other").Wake; len(woken) != 1 || woken[0].To != two {
		t.Errorf("the other key answers %d, want the one that waited for both", len(woken))
	}
}
