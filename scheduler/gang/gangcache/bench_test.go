package gangcache

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkGangs takes gangs from their first pod to the last binding: Put, Admit, Attempt, Start, Reserve, and Put
// again. What it reports per pod must not grow with the gang.
func BenchmarkGangs(b *testing.B) {
	for _, c := range []struct {
		name           string
		gangs, members int
		spec           Spec
	}{
		{"1000 of 5", 1000, 5, Spec{Min: 5, Total: 5}},
		{"1 of 1000", 1, 1000, Spec{Min: 1000, Total: 1000}},
		{"1 of 5000", 1, 5000, Spec{Min: 5000, Total: 5000}},
		{"1 of 5000, half at once", 1, 5000, Spec{Min: 2500, Total: 5000}},
		{"1 of 5000, waiting-and-running", 1, 5000, Spec{Min: 2500, Total: 5000, Policy: WaitingAndRunning}},
		{"1 of 5000, NonStrict", 1, 5000, Spec{Min: 5000, Total: 5000, Mode: NonStrict}},
		{"1 of 5000, malformed", 1, 5000, Spec{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			spec := c.spec
			spec.Waiting = time.Hour
			if spec.Mode == "" {
				spec.Mode = Strict
			}
			if spec.Policy == "" {
				spec.Policy = OnceSatisfied
			}
			for b.Loop() {
				life(b, c.gangs, c.members, spec)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.gangs*c.members), "ns/pod")
		})
	}
}

// life places gangs one after another and deletes them; a spec without a minimum is a mistake of all pods.
func life(b *testing.B, gangs, members int, spec Spec) {
	cache := New()
	for n := range gangs {
		key := Key{Namespace: "a", Name: fmt.Sprint("g", n)}
		pods := make([]Member, members)
		plan := map[UID]string{}
		for i := range pods {
			name := fmt.Sprintf("g%d-%d", n, i)
			pods[i] = Member{
				UID: UID(name), Namespace: "a", Name: name, Created: start.Add(time.Duration(i) * time.Second),
				Gang: key, Spec: spec, State: Pending,
			}
			if spec.Min == 0 {
				pods[i].Problem = errMistake
			}
			if i < spec.Min {
				plan[UID(name)] = ""
			}
			cache.Put(pods[i], start)
			cache.Admit(pods[i].UID)
		}
		cache.Attempt(pods[0].UID)
		if spec.Min > 0 && spec.Mode == Strict {
			cache.Start(pods[0].UID, plan)
		}
		for _, p := range pods {
			if cache.Admit(p.UID).OK {
				cache.Reserve(p.UID, "", start)
			}
		}
		for _, p := range pods {
			p.State = Bound
			cache.Put(p, start)
		}
		for _, p := range pods {
			cache.Membership(p.UID)
		}
		for _, p := range pods {
			cache.Remove(p.UID, start)
		}
	}
	if s := cache.Stats(); s != (Stats{}) {
		b.Fatalf("gangs are left: %+v", s)
	}
}
