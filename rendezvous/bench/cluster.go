package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

// clusterClients is the size of each run of a cluster.
const clusterClients = 16

// cluster measures one rendezvous for many runs: all meet at once at two gateways to one etcd, as after a power cut,
// with new ids in each round. Meanwhile another client swaps a value every 20 ms.
func (b *bench) cluster(ctx context.Context) ([][]string, error) {
	rows := [][]string{{
		"round", "runs", "met", "world p50", "world p99", "swap p50", "swap p99",
		"gateways' memory", "etcd's memory", "etcd's disk",
	}}
	etcd, gateways, err := b.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer etcd.stop()
	for _, g := range gateways {
		defer g.stop()
	}
	for round := range b.rounds {
		stopProbe := probe(ctx, "http://"+gateways[0].endpoint+"/v2/keys/probe")
		worlds := b.meetAll(ctx, gateways)
		swaps, err := stopProbe()
		if err != nil {
			return nil, err
		}
		row := []string{
			fmt.Sprint(round + 1), fmt.Sprint(b.runsAtOnce), fmt.Sprint(len(worlds)),
			at(worlds, 50), at(worlds, 99), at(swaps, 50), at(swaps, 99),
		}
		memory := 0
		for _, g := range gateways {
			now, _, err := g.memory()
			if err != nil {
				return nil, err
			}
			memory += now
		}
		ofEtcd, _, err := etcd.memory()
		if err != nil {
			return nil, err
		}
		row = append(row, fmt.Sprintf("%d MiB", memory), fmt.Sprintf("%d MiB", ofEtcd),
			fmt.Sprintf("%d MiB", size(etcd.data)>>20))
		b.log.Printf("cluster: %q", row)
		rows = append(rows, row)
	}
	return rows, nil
}

// startCluster starts an etcd, and two gateways before it.
func (b *bench) startCluster(ctx context.Context) (etcd *server, gateways [2]*server, err error) {
	if etcd, err = b.start(ctx, etcdV3); err != nil {
		return nil, gateways, err
	}
	b.behind = etcd.endpoint
	for i := range gateways {
		if gateways[i], err = b.start(ctx, gateway); err != nil {
			for _, g := range gateways[:i] {
				g.stop()
			}
			etcd.stop()
			return nil, gateways, err
		}
	}
	return etcd, gateways, nil
}

// meetAll lets the clients of all runs meet, and returns how long each run took that did, shortest first.
func (b *bench) meetAll(ctx context.Context, gateways [2]*server) (met []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range b.runsAtOnce {
		all.Go(func() {
			took, err := b.meet(ctx, clusterClients, gateways[0].endpoint, gateways[1].endpoint)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				b.log.Print(err)
				return
			}
			met = append(met, took)
		})
	}
	all.Wait()
	slices.Sort(met)
	return met
}

// probe swaps a value until it is stopped, which returns how long each swap took, shortest first.
func probe(ctx context.Context, key string) (stop func() ([]time.Duration, error)) {
	done, ended := make(chan struct{}), make(chan struct{})
	var took []time.Duration
	var err error
	go func() {
		defer close(ended)
		err = ask(ctx, http.DefaultClient, http.MethodPut, key, url.Values{"value": {"0"}})
		for n := 0; err == nil; n++ {
			begin := time.Now()
			err = ask(ctx, http.DefaultClient, http.MethodPut, key,
				url.Values{"value": {fmt.Sprint(n + 1)}, "prevValue": {fmt.Sprint(n)}})
			took = append(took, time.Since(begin))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() ([]time.Duration, error) {
		close(done)
		<-ended
		slices.Sort(took)
		return took, err
	}
}

// at is a percentile of what is sorted.
func at(ds []time.Duration, percent int) string {
	if len(ds) == 0 {
		return ""
	}
	return markdown.Seconds(ds[min(len(ds)-1, len(ds)*percent/100)])
}
