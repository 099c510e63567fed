package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	noisyRuns = 20
	noisySpan = 10 * time.Second
)

// noise is what the agents of one run do in a loop, each on a connection of its own.
type noise struct {
	name    string
	clients int
	ask     func(ctx context.Context, client *http.Client, endpoint string, i, n int) error
}

var noises = []noise{
	{"nothing", 0, nil},
	{"write keys of their own", 64, func(ctx context.Context, c *http.Client, at string, i, n int) error {
		return ask(ctx, c, http.MethodPut, runKey(at, "noisy", i), url.Values{"value": {fmt.Sprint(n)}})
	}},
	{"write one key", 1000, func(ctx context.Context, c *http.Client, at string, _, n int) error {
		return ask(ctx, c, http.MethodPut, runKey(at, "noisy", 0), url.Values{"value": {fmt.Sprint(n)}})
	}},
	{"read one key", 64, func(ctx context.Context, c *http.Client, at string, _, _ int) error {
		return ask(ctx, c, http.MethodGet, runKey(at, "noisy", 0), nil)
	}},
}

func runKey(endpoint, run string, i int) string {
	return fmt.Sprintf("http://%s/v2/keys/torchelastic/p2p/run_%s/%d", endpoint, run, i)
}

// noisy measures what one run that asks in a loop costs 20 others, each of which swaps a value every 20 ms, all at two
// gateways over one etcd.
func (b *bench) noisy(ctx context.Context) ([][]string, error) {
	rows := [][]string{{
		"agents of the noisy run", "each in a loop", "its requests per second", "others' swap p50", "p99", "longest",
	}}
	etcd, gateways, err := b.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer etcd.stop()
	for _, g := range gateways {
		defer g.stop()
	}
	for _, n := range noises {
		asked, swaps, err := b.beside(ctx, n, gateways)
		if err != nil {
			return nil, fmt.Errorf("agents that %s: %w", n.name, err)
		}
		row := []string{
			fmt.Sprint(n.clients), n.name, fmt.Sprintf("%.0f", asked), at(swaps, 50), at(swaps, 99), at(swaps, 100),
		}
		b.log.Printf("noisy: %q", row)
		rows = append(rows, row)
	}
	return rows, nil
}

// beside returns how many requests a second the noisy run was answered, and how long each swap of the others took.
func (b *bench) beside(ctx context.Context, n noise, gateways [2]*server) (float64, []time.Duration, error) {
	loop, end := context.WithCancel(ctx)
	var asked atomic.Int64
	var clients sync.WaitGroup
	errs := make([]error, n.clients)
	for i := range n.clients {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for k := 0; errs[i] == nil; k++ {
				errs[i] = n.ask(loop, client, gateways[i%2].endpoint, i, k)
				asked.Add(1)
			}
		})
	}
	time.Sleep(time.Second) // until all of them have a connection
	before := asked.Load()
	stops := make([]func() ([]time.Duration, error), noisyRuns)
	for i := range stops {
		run := fmt.Sprint(i, "-", strings.ReplaceAll(n.name, " ", "-"))
		stops[i] = probe(ctx, runKey(gateways[i%2].endpoint, run, 0))
	}
	time.Sleep(noisySpan)
	rate := float64(asked.Load()-before) / noisySpan.Seconds()
	var swaps []time.Duration
	var failed []error
	for _, stop := range stops {
		took, err := stop()
		swaps, failed = append(swaps, took...), append(failed, err)
	}
	end()
	clients.Wait()
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			failed = append(failed, err)
		}
	}
	slices.Sort(swaps)
	return rate, swaps, errors.Join(failed...)
}
