package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
	"github.com/tegen-dev/tegen/rendezvous/etcd"
	"github.com/tegen-dev/tegen/rendezvous/etcdv3"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// contender is a protocol on a server.
type contender struct{ backend, server string }

func (b *bench) contenders() []contender {
	out := []contender{{"etcd", companion}, {"etcd-v3", etcdV3}}
	if b.etcd != "" {
		out = slices.Insert(out, 1, contender{"etcd", etcdV2})
	}
	return out
}

// world is what forming one cost.
type world struct {
	took             time.Duration // from the first join to the last agent that knows its rank
	messages, writes float64       // per agent
	memory           int           // the server's at most, MiB
}

// worlds forms worlds of each size by each contender, in turns.
func (b *bench) worlds(ctx context.Context) ([][]string, error) {
	type key struct {
		contender
		size int
	}
	all, failed := map[key][]world{}, map[contender]bool{}
	for round := range b.rounds {
		for _, size := range b.sizes {
			for _, c := range b.contenders() {
				if failed[c] {
					continue
				}
				w, err := b.form(ctx, c, size)
				switch {
				case ctx.Err() != nil:
					return nil, context.Cause(ctx)
				case err != nil:
					b.log.Printf("%d agents, %s on %s: %v", size, c.backend, c.server, err)
					failed[c] = true
					continue
				}
				b.log.Printf("round %d: %d agents, %s on %s: %s, %.1f messages and %.1f writes each", round+1, size,
					c.backend, c.server, markdown.Seconds(w.took), w.messages, w.writes)
				all[key{c, size}] = append(all[key{c, size}], w)
			}
		}
		clear(failed)
	}
	rows := [][]string{{
		"agents", "backend", "server", "rounds", "seconds", "least to most", "ratio", "messages/agent",
		"writes/agent", "server's memory",
	}}
	for _, size := range b.sizes {
		base := took(all[key{contender{"etcd", etcdV2}, size}])
		for _, c := range b.contenders() {
			ws := all[key{c, size}]
			if len(ws) == 0 {
				rows = append(rows, []string{
					fmt.Sprint(size), c.backend, c.server, "0",
					"over " + markdown.Seconds(b.limit), "", "", "", "", "",
				})
				continue
			}
			ts := took(ws)
			ratio := ""
			if len(base) > 0 && c.server != etcdV2 {
				ratio = fmt.Sprintf("%.2f", ts[len(ts)/2].Seconds()/base[len(base)/2].Seconds())
			}
			last := ws[len(ws)-1]
			rows = append(rows, []string{
				fmt.Sprint(size), c.backend, c.server, fmt.Sprint(len(ws)), markdown.Seconds(ts[len(ts)/2]),
				markdown.Seconds(ts[0]) + " to " + markdown.Seconds(ts[len(ts)-1]), ratio,
				fmt.Sprintf("%.1f", last.messages), fmt.Sprintf("%.1f", last.writes),
				fmt.Sprintf("%d MiB", last.memory),
			})
		}
	}
	return rows, nil
}

// took are the times of worlds, shortest first.
func took(ws []world) []time.Duration {
	out := make([]time.Duration, len(ws))
	for i, w := range ws {
		out[i] = w.took
	}
	slices.Sort(out)
	return out
}

// agent is a backend with its counts.
type agent struct {
	rendezvous.Backend
	counts func() (messages, writes int64)
}

// mostConnected is up to how many agents of etcd-v3 are neighbours that watch each other: each has five sockets for
// that, and a process may not have many more than ten thousand.
const mostConnected = 1000

// agents opens n agents of one run. Those of etcd-v3 share a few connections: thousands of them to one machine would
// measure the machine.
func (b *bench) agents(ctx context.Context, c contender, s *server, least, most, n int,
	lease time.Duration,
) (out []agent, done func(), err error) {
	b.runs++
	settings := rendezvous.Settings{
		RunID: fmt.Sprintf("run-%d", b.runs), Min: least, Max: most, Join: b.limit,
		LastCall: lastCall,
	}
	var stores []*store.Store
	done = func() {
		for _, a := range out {
			_ = a.Close()
		}
		for _, s := range stores {
			_ = s.Close()
		}
	}
	options := etcdv3.Options{Lease: lease}
	if n > mostConnected {
		options.Listen = func() (net.Listener, error) { return nil, errors.New("too many for one process") }
	}
	for i := range n {
		self := rendezvous.Agent{
			ID: fmt.Sprintf("%s-agent-%d", settings.RunID, i), Host: "127.0.0.1", Role: "default",
			Workers: 1,
		}
		if c.backend == "etcd" {
			a, err := openEtcd(s.endpoint, settings, self)
			if err != nil {
				done()
				return nil, nil, err
			}
			out = append(out, agent{a, func() (int64, int64) {
				r := a.Requests()
				return r.Reads + r.Writes + r.Watches, r.Writes
			}})
			continue
		}
		if i%100 == 0 {
			st, err := store.External{Endpoints: []string{s.endpoint}}.Open(ctx)
			if err != nil {
				done()
				return nil, nil, err
			}
			stores = append(stores, st)
		}
		a, err := etcdv3.New(stores[len(stores)-1].Client, settings, self, options)
		if err != nil {
			done()
			return nil, nil, err
		}
		out = append(out, agent{a, func() (int64, int64) {
			st := a.Stats()
			return st.Requests + st.Events, st.Writes
		}})
	}
	return out, done, nil
}

func openEtcd(endpoint string, settings rendezvous.Settings, self rendezvous.Agent) (*etcd.Agent, error) {
	return etcd.Open(etcd.Config{Endpoints: []string{endpoint}}, settings, self)
}

// form lets n agents of n:n join at once, on a server of their own.
func (b *bench) form(ctx context.Context, c contender, n int) (world, error) {
	s, err := b.start(ctx, c.server)
	if err != nil {
		return world{}, err
	}
	defer s.stop()
	// a lease that ends while all agents share two cores measures the machine
	agents, done, err := b.agents(ctx, c, s, n, n, n, time.Minute)
	if err != nil {
		return world{}, err
	}
	defer done()
	begin := time.Now()
	if err := joinAll(ctx, agents, b.limit, nil); err != nil {
		return world{}, err
	}
	w := world{took: time.Since(begin)}
	for _, a := range agents {
		m, wr := a.counts()
		w.messages += float64(m) / float64(n)
		w.writes += float64(wr) / float64(n)
	}
	_, w.memory, err = s.memory()
	return w, err
}

// joinAll joins with all agents, and hands on their worlds.
func joinAll(ctx context.Context, agents []agent, limit time.Duration, keep func(i int, w rendezvous.World)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%d agents found no world in %s", len(agents), limit))
	defer cancel()
	errs := make([]error, len(agents))
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() {
			w, err := a.Join(ctx)
			errs[i] = err
			if err == nil && keep != nil {
				keep(i, w)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}
