package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
	"github.com/tegen-dev/tegen/rendezvous/etcdv3"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// cuts measures what a lease of etcd-v3 forgives: one agent of four hears nothing for a while, or the store dies and
// comes back. What is lost although nobody has died costs every worker a restart.
func (b *bench) cuts(ctx context.Context) ([][]string, error) {
	away := []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}
	rows := [][]string{{"lease"}}
	for _, d := range away {
		rows[0] = append(rows[0], fmt.Sprintf("one agent cut off for %s", d))
	}
	rows[0] = append(rows[0], fmt.Sprintf("store killed, back after %s", away[len(away)-1]))
	for _, lease := range []time.Duration{
		4 * time.Second, 10 * time.Second, 16 * time.Second, 20 * time.Second,
	} {
		row := []string{lease.String()}
		for _, d := range away {
			text, err := b.cut(ctx, lease, func(_ *server, f *forwarder) error {
				f.pause(true)
				defer f.pause(false)
				return wait(ctx, d)
			})
			if err != nil {
				return nil, err
			}
			row = append(row, text)
		}
		text, err := b.cut(ctx, lease, func(s *server, f *forwarder) error {
			s.stop()
			if err := wait(ctx, away[len(away)-1]); err != nil {
				return err
			}
			again, err := b.startOn(ctx, etcdV3, s.data)
			if err == nil {
				*s = *again
				f.turn(s.endpoint)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, append(row, text))
		b.log.Printf("cuts, lease of %s: %q", lease, rows[len(rows)-1][1:])
	}
	return rows, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cut disturbs a world of four, and says whether an agent whose own connection is whole saw it end, and after how long.
// Where the store is what fails all agents go through the forwarder.
func (b *bench) cut(ctx context.Context, lease time.Duration, disturb func(*server, *forwarder) error) (string, error) {
	s, err := b.start(ctx, etcdV3)
	if err != nil {
		return "", err
	}
	defer func() { s.stop() }()
	var through [2]*forwarder // of the agent that may be cut off, and of the others
	for i := range through {
		if through[i], err = forward(s.endpoint); err != nil {
			return "", err
		}
		defer through[i].close()
	}
	b.runs++
	agents := make([]agent, 4)
	for i := range agents {
		f := through[min(i, 1)]
		st, err := store.External{Endpoints: []string{f.address()}}.Open(ctx)
		if err != nil {
			return "", err
		}
		defer func() { _ = st.Close() }()
		settings := rendezvous.Settings{
			RunID: fmt.Sprintf("run-%d", b.runs), Min: 4, Max: 4, Join: b.limit, LastCall: lastCall,
		}
		self := rendezvous.Agent{ID: fmt.Sprint("agent-", i), Host: "127.0.0.1", Role: "default", Workers: 1}
		a, err := etcdv3.New(st.Client, settings, self, etcdv3.Options{Lease: lease})
		if err != nil {
			return "", err
		}
		defer func() { _ = a.Close() }()
		agents[i] = agent{Backend: a}
	}
	worlds := make([]rendezvous.World, len(agents))
	if err := joinAll(ctx, agents, b.limit, func(i int, w rendezvous.World) { worlds[i] = w }); err != nil {
		return "", err
	}
	if err := wait(ctx, time.Second); err != nil { // a world at work
		return "", err
	}
	begin := time.Now()
	disturbed := make(chan error, 1)
	go func() {
		err := disturb(s, through[0])
		through[1].turn(s.endpoint)
		disturbed <- err
	}()
	var after <-chan time.Time
	for {
		select {
		case <-worlds[1].Changed:
			seen := time.Since(begin)
			if disturbed != nil {
				if err := <-disturbed; err != nil {
					return "", err
				}
			}
			return "lost after " + markdown.Seconds(seen), nil
		case err := <-disturbed:
			if err != nil {
				return "", err
			}
			disturbed, after = nil, time.After(lease+2*time.Second)
		case <-after:
			return "kept", nil
		}
	}
}
