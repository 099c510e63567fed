package ledger

import (
	"testing"
	"time"
)

// TestForgotten: nothing is left of a native gang once its PodGroup and its pods have gone, in whatever order.
func TestForgotten(t *testing.T) {
	key := Key{Namespace: "a", Name: "g", Native: true}
	spec := Spec{Min: 1, Mode: Strict, Policy: WaitingAndRunning, Waiting: time.Minute}
	now := time.Unix(0, 0)
	rule := func(l *Ledger) { l.Rule(key, spec, nil, now) }
	unrule := func(l *Ledger) { l.Unrule(key, now) }
	put := func(l *Ledger) { l.Put(Member{UID: "p", Namespace: "a", Name: "p", Gang: key, State: Pending}, now) }
	remove := func(l *Ledger) { l.Remove("p", now) }
	for name, steps := range map[string][]func(*Ledger){
		"the pods first":     {rule, put, remove, unrule},
		"the PodGroup first": {rule, put, unrule, remove},
		"there was none":     {put, remove},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			for _, step := range steps {
				step(l)
			}
			if n := len(l.gangs) + len(l.of) + len(l.naming); n != 0 {
				t.Errorf("%d facts are left: %v", n, l.gangs)
			}
		})
	}
}
