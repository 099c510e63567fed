package keys

import "testing"

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
