package keys

import (
	"errors"
	"testing"
)

// TestOwnWriteToReplacedStore: once the store was replaced, what was written to the one before is not taken in, nor
// kept for later.
func TestOwnWriteToReplacedStore(t *testing.T) {
	c := commit{
		rev:   7,
		parts: []part{{&head{Action: actionSet, Key: "/a"}, []change{{"/a", &record{value: "x"}, 7, 7}}}},
	}
	for _, stale := range []bool{false, true} {
		k := &Keys{tree: newTree(), own: map[uint64]commit{}, past: history{limit: 10, first: 1}, stale: stale}
		k.applyOwn(0, c)
		if took := k.tree.at("/a") != nil; took == stale || len(k.own) != 0 {
			t.Errorf("replaced %t: taken in %t, kept for later %d", stale, took, len(k.own))
		}
	}
	k := &Keys{tree: newTree(), own: map[uint64]commit{}, stale: true}
	if k.applyOwn(5, c); len(k.own) != 0 {
		t.Error("a write to the store before waits for a tree that will never be")
	}
}

// TestNoWriteToReplacedStore: once the store was replaced nothing is written that was decided upon by the one before,
// until that which is there is loaded. Another process tells by the index of the next write that it was replaced.
func TestNoWriteToReplacedStore(t *testing.T) {
	k := &Keys{tree: newTree(), stale: true, o: Options{}.filled()} // without a client it cannot write
	b := newBatch()
	b.add(&proposal{plan: &plan{head: head{Action: actionSet, Key: "/a"}, put: &record{}}}, batchLimits{1, 1})
	if _, err := k.transact(t.Context(), b); !errors.Is(err, errStale) {
		t.Errorf("a write came to %v", err)
	}
}
