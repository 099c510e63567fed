package etcdv3

import (
	"fmt"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
)

// BenchmarkForm measures from the first join of n agents, all in this process, to when the last knows its rank. Each counts
// its messages as if it had the client to itself; messages are requests, their answers not counted, and what watches tell.
func BenchmarkForm(b *testing.B) {
	for _, n := range []int{64, 256, 1000, 4000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			c := open(b)
			var sum, most Stats
			for i := range b.N {
				b.StopTimer()
				s := rendezvous.Settings{RunID: fmt.Sprint("run", i), Min: n, Max: n, Join: 5 * time.Minute}
				all := crowd(b, c, s, n, Options{Lease: 20 * time.Second, Port: func() (int, error) { return 1, nil }})
				call := join(b)
				b.StartTimer()
				together(all, call)
				b.StopTimer()
				checkWorld(b, 1, all...)
				for _, p := range all {
					st := p.Stats()
					sum.Requests, sum.Events, sum.Writes = sum.Requests+st.Requests, sum.Events+st.Events, sum.Writes+st.Writes
					if p != all[0] {
						most.Requests, most.Events = max(most.Requests, st.Requests), max(most.Events, st.Events)
					}
				}
				together(all, func(p *peer) { _ = p.Close() })
			}
			per := float64(n * b.N)
			b.ReportMetric(float64(sum.Requests)/per, "requests/agent")
			b.ReportMetric(float64(sum.Events)/per, "events/agent")
			b.ReportMetric(float64(sum.Writes)/per, "writes/agent")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/world")
		})
	}
}
