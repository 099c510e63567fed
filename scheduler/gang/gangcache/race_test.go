package gangcache

import (
	"fmt"
	"sync"
	"testing"
)

// TestConcurrentUse asks and enters from several goroutines, as kube-scheduler's queue, cycles and watches do. It fails
// under the race detector where an answer writes what another reads.
func TestConcurrentUse(t *testing.T) {
	cache := New()
	spec := Spec{Min: 4, Total: 8, Mode: Strict, Policy: WaitingAndRunning, Waiting: 600e9}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				uid := UID(fmt.Sprintf("g%d-%d", i%3, (i+worker)%8))
				cache.Put(
					Member{
						UID: uid, Namespace: "a", Name: string(uid), Created: start,
						Gang: Key{Namespace: "a", Name: fmt.Sprint("g", i%3)}, Spec: spec, State: Pending,
					},
					start,
				)
				if cache.Admit(uid).OK {
					plan := map[UID]string{}
					for _, w := range cache.Attempt(uid).Wants {
						for _, c := range w.Candidates[:min(w.Need, len(w.Candidates))] {
							plan[c] = ""
						}
					}
					cache.Start(uid, plan)
					cache.Reserve(uid, "", start)
				}
				cache.Order(uid)
				cache.BlockingReason(uid)
				cache.Membership(uid)
				cache.Stats()
				if i%5 == worker {
					cache.Unreserve(uid)
					cache.Remove(uid, start)
				}
			}
		})
	}
	all.Wait()
	checkSums(t, cache)
}
