package gangcache

import (
	"testing"
	"time"
)

// TestForgotten: nothing is left of a native gang once its PodGroup and its pods have gone, in whatever order.
func TestForgotten(t *testing.T) {
	key := Key{Namespace: "a", Name: "g", Native: true}
	spec := Spec{Min: 1, Mode: Strict, Policy: WaitingAndRunning, Waiting: time.Minute}
	now := time.Unix(0, 0)
	setPodGroup := func(cache *Cache) { cache.SetPodGroup(key, spec, nil, now) }
	removePodGroup := func(cache *Cache) { cache.RemovePodGroup(key, now) }
	put := func(cache *Cache) {
		cache.Put(Member{UID: "p", Namespace: "a", Name: "p", Gang: key, State: Pending}, now)
	}
	remove := func(cache *Cache) { cache.Remove("p", now) }
	for name, steps := range map[string][]func(*Cache){
		"the pods first":     {setPodGroup, put, remove, removePodGroup},
		"the PodGroup first": {setPodGroup, put, removePodGroup, remove},
		"there was none":     {put, remove},
	} {
		t.Run(name, func(t *testing.T) {
			cache := New()
			for _, step := range steps {
				step(cache)
			}
			if n := len(cache.gangs) + len(cache.of) + len(cache.naming); n != 0 {
				t.Errorf("%d facts are left: %v", n, cache.gangs)
			}
		})
	}
}
