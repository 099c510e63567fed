package etcdv3

import (
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// spread has no more than a hundred agents share a client, which begins one watch after the other.
func spread(b *testing.B, c *clientv3.Client, all []*peer) {
	for part := range slices.Chunk(all, 100) {
		own, err := store.External{Endpoints: c.Endpoints()}.Open(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = own.Close() })
		for _, p := range part {
			p.client = own.Client
		}
	}
}

// BenchmarkForm measures from the first join of n agents, all in this process, to when the last knows its rank. Each
// counts its messages as if it had the client to itself; messages are requests, their answers not counted, and events
// of watches.
func BenchmarkForm(b *testing.B) {
	for _, n := range []int{64, 256, 1000, 4000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			c := open(b)
			var sum, most Stats
			for i := range b.N {
				b.StopTimer()
				s := rendezvous.Settings{RunID: fmt.Sprint(b.Name(), b.N, i), Min: n, Max: n, Join: 5 * time.Minute}
				all := crowd(b, c, s, n, Options{Lease: time.Minute, Port: func() (int, error) { return 1, nil }})
				spread(b, c, all)
				call := join(b)
				b.StartTimer()
				together(all, call)
				b.StopTimer()
				checkWorld(b, 1, all...)
				for _, p := range all {
					st := p.Stats()
					sum.Requests, sum.Events, sum.Writes = sum.Requests+st.Requests, sum.Events+st.Events,
						sum.Writes+st.Writes
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

// BenchmarkRecover measures from when an agent of n is lost, without a word, to when the rest and one that was waiting
// know their new ranks. Its lease is 2 s; those of the others are longer, for this process does the work of all of
// them. With k=0 it is the leader that is lost.
func BenchmarkRecover(b *testing.B) {
	for _, n := range []int{8, 64, 256, 1000} {
		for _, k := range []int{0, n / 2} {
			b.Run(fmt.Sprintf("n=%d/k=%d", n, k), func(b *testing.B) {
				c := open(b)
				for i := range b.N {
					b.StopTimer()
					s := rendezvous.Settings{
						RunID: fmt.Sprint(b.Name(), b.N, i), Min: n - 1, Max: n - 1,
						Join: 5 * time.Minute,
					}
					o := Options{Lease: time.Minute, Port: func() (int, error) { return 1, nil }}
					all := crowd(b, c, s, n, o)
					all[k].options.Lease = 2 * time.Second
					spread(b, c, all)
					spare, rest := all[n-1], all[:n-1]
					lead := make(chan struct{})
					go func() { // the first that joins is to lead
						defer close(lead)
						join(b)(rest[0])
					}()
					waitKeys(b, c, newKeys("/tegen/rendezvous", s.RunID).agents, 1)
					together(rest[1:], join(b))
					<-lead
					again := join(b)
					b.StartTimer()
					_ = rest[k].Close()
					lost := rest[k]
					together(all, func(p *peer) {
						if p != lost {
							if p != spare {
								changed(b, p)
							}
							again(p)
						}
					})
					b.StopTimer()
					rest[k] = spare
					checkWorld(b, 2, rest...)
					together(all, func(p *peer) { _ = p.Close() })
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/recovery")
			})
		}
	}
}
