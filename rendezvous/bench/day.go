package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

const (
	dayHold  = 30 * time.Second // that a run trains
	dayLooks = 5 * time.Second  // between two looks at memory and disk
)

// daytime is what a day has been so far.
type daytime struct {
	mu     sync.Mutex
	formed []time.Duration
	failed int

	gateways, etcd int // resident memory, MiB, the most of all looks
	disk           int64
}

// day measures what the runs of a day leave behind, compressed into a while: they begin one after the other, each forms
// a world of 16 agents, holds it for a while, and ends. Meanwhile somebody else swaps a value every 20 ms.
func (b *bench) day(ctx context.Context) ([][]string, error) {
	etcd, gateways, err := b.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer etcd.stop()
	for _, g := range gateways {
		defer g.stop()
	}
	stopProbe := probe(ctx, "http://"+gateways[0].endpoint+"/v2/keys/probe")
	var d daytime
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { d.watch(looking, b, etcd, gateways) })
	b.liveThrough(ctx, &d, gateways)
	enough()
	looks.Wait()
	swaps, err := stopProbe()
	if err != nil {
		return nil, err
	}
	if err := d.look(etcd, gateways); err != nil {
		return nil, err
	}
	slices.Sort(d.formed)
	return [][]string{{
		"runs", "in", "formed", "world p50", "world p99", "swap p50", "swap p99", "gateways' memory", "etcd's memory",
		"disk at most", "disk at the end",
	}, {
		fmt.Sprint(b.dayRuns), b.span.String(), fmt.Sprint(len(d.formed)), at(d.formed, 50), at(d.formed, 99),
		at(swaps, 50), at(swaps, 99), fmt.Sprintf("%d MiB", d.gateways), fmt.Sprintf("%d MiB", d.etcd),
		fmt.Sprintf("%d MiB", d.disk>>20), fmt.Sprintf("%d MiB", size(etcd.data)>>20),
	}}, nil
}

// liveThrough begins all runs at even distances, and waits until they have ended.
func (b *bench) liveThrough(ctx context.Context, d *daytime, gateways [2]*server) {
	tick := time.NewTicker(b.span / time.Duration(b.dayRuns))
	defer tick.Stop()
	var runs sync.WaitGroup
	for range b.dayRuns {
		b.runs++
		id := fmt.Sprintf("run-%d", b.runs)
		runs.Go(func() {
			took, err := b.live(ctx, id, gateways)
			d.mu.Lock()
			defer d.mu.Unlock()
			if err != nil {
				d.failed++
				b.log.Printf("%s: %v", id, err)
				return
			}
			d.formed = append(d.formed, took)
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	runs.Wait()
}

// live is one run from its beginning to its end. It returns how long its world took.
func (b *bench) live(ctx context.Context, id string, gateways [2]*server) (time.Duration, error) {
	agents, done, err := b.openRun(id, gateways)
	if err != nil {
		return 0, err
	}
	defer done()
	r, err := settle(ctx, id, agents, b.limit, dayHold, gateways[0].endpoint)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	var ending sync.WaitGroup
	errs := make([]error, len(agents))
	for i, a := range agents {
		ending.Go(func() { errs[i] = a.Finish(ctx) })
	}
	ending.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("ending: %w", err)
		}
	}
	return r.took, nil
}

func (d *daytime) watch(ctx context.Context, b *bench, etcd *server, gateways [2]*server) {
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(dayLooks):
		}
		if err := d.look(etcd, gateways); err != nil {
			b.log.Print(err)
		}
		d.mu.Lock()
		b.log.Printf("after %s: %d runs have ended, %d failed; gateways %d MiB, etcd %d MiB, disk %d MiB at most",
			markdown.Seconds(time.Since(begin)), len(d.formed), d.failed, d.gateways, d.etcd, d.disk>>20)
		d.mu.Unlock()
	}
}

// look takes memory and disk as they are where they are the most so far.
func (d *daytime) look(etcd *server, gateways [2]*server) error {
	memory := 0
	for _, g := range gateways {
		now, _, err := g.memory()
		if err != nil {
			return err
		}
		memory += now
	}
	ofEtcd, _, err := etcd.memory()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gateways, d.etcd, d.disk = max(d.gateways, memory), max(d.etcd, ofEtcd), max(d.disk, size(etcd.data))
	return nil
}

// openRun opens the agents of a run, half of them at each gateway.
func (b *bench) openRun(id string, gateways [2]*server) (agents []agent, done func(), err error) {
	done = func() {
		for _, a := range agents {
			_ = a.Close()
		}
	}
	for i := range clusterAgents {
		a, err := openEtcd(gateways[i%2].endpoint, rendezvous.Settings{
			RunID: id, Min: clusterAgents, Max: clusterAgents, Join: b.limit, LastCall: lastCall,
		}, rendezvous.Agent{ID: fmt.Sprintf("%s-agent-%d", id, i), Host: "127.0.0.1", Role: "default", Workers: 1})
		if err != nil {
			done()
			return nil, nil, err
		}
		agents = append(agents, agent{Backend: a})
	}
	return agents, done, nil
}
