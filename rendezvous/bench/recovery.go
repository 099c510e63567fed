package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
	"github.com/tegen-dev/tegen/rendezvous/etcdv3"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// lastCall of the worlds that lose an agent. They have fewer agents than they may have, so it is waited for.
const lastCall = time.Second

// recoveries measures how long after kill -9 of one agent of four the other three are in a world again. Agents of
// etcd-v3 see the loss by themselves; those of torch's protocol do not look, and get a call to join again at once, as
// by a collective that fails.
func (b *bench) recoveries(ctx context.Context) ([][]string, error) {
	rows := [][]string{{"backend", "server", "loss seen", "new world", "least to most"}}
	for _, c := range b.contenders() {
		var seen, whole []time.Duration
		for range b.rounds {
			s, w, err := b.recover(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", c.backend, c.server, err)
			}
			seen, whole = append(seen, s), append(whole, w)
			b.log.Printf("recovery, %s on %s: seen after %s, new world after %s", c.backend, c.server,
				markdown.Seconds(s), markdown.Seconds(w))
		}
		s, w := took(worldsOf(seen)), took(worldsOf(whole))
		rows = append(rows, []string{
			c.backend, c.server, markdown.Seconds(s[len(s)/2]), markdown.Seconds(w[len(w)/2]),
			markdown.Seconds(w[0]) + " to " + markdown.Seconds(w[len(w)-1]),
		})
	}
	return rows, nil
}

func worldsOf(ts []time.Duration) (out []world) {
	for _, t := range ts {
		out = append(out, world{took: t})
	}
	return out
}

// victim joins as a process of its own, which is killed.
const victimCommand = "victim"

func (b *bench) recover(ctx context.Context, c contender) (seen, whole time.Duration, err error) {
	s, err := b.start(ctx, c.server)
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	agents, done, err := b.agents(ctx, c, s, 2, 5, 3, b.lease)
	if err != nil {
		return 0, 0, err
	}
	defer done()
	victim := exec.CommandContext(ctx, os.Args[0], victimCommand, c.backend, s.endpoint, fmt.Sprintf("run-%d", b.runs),
		b.lease.String())
	victim.Stderr = os.Stderr
	if err := victim.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { _ = victim.Wait() }()
	worlds := make([]rendezvous.World, len(agents))
	if err := joinAll(ctx, agents, b.limit, func(i int, w rendezvous.World) { worlds[i] = w }); err != nil {
		_ = victim.Process.Kill()
		return 0, 0, err
	}
	for worlds[0].Size < 4 { // the victim came later than the last call
		if err := joinAll(ctx, agents, b.limit, func(i int, w rendezvous.World) { worlds[i] = w }); err != nil {
			_ = victim.Process.Kill()
			return 0, 0, err
		}
	}
	time.Sleep(time.Second) // a world at work
	begin := time.Now()
	if err := victim.Process.Kill(); err != nil {
		return 0, 0, err
	}
	if c.backend != "etcd" {
		select {
		case <-worlds[0].Changed:
		case <-time.After(b.limit):
			return 0, 0, errors.New("no agent noticed the loss")
		}
	}
	seen = time.Since(begin)
	for size := 4; size != 3; size = worlds[0].Size {
		if err := joinAll(ctx, agents, b.limit, func(i int, w rendezvous.World) { worlds[i] = w }); err != nil {
			return 0, 0, err
		}
	}
	return seen, time.Since(begin), nil
}

// joinAsVictim joins, and waits for its end.
func joinAsVictim(args []string) error {
	backend, endpoint, run := args[0], args[1], args[2]
	lease, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	ctx := context.Background()
	settings := rendezvous.Settings{RunID: run, Min: 2, Max: 5, Join: time.Minute, LastCall: lastCall}
	self := rendezvous.Agent{ID: "victim", Host: "127.0.0.1", Role: "default", Workers: 1}
	var b rendezvous.Backend
	if backend == "etcd" {
		b, err = openEtcd(endpoint, settings, self)
	} else {
		var s *store.Store
		if s, err = (store.External{Endpoints: []string{endpoint}}).Open(ctx); err == nil {
			b, err = etcdv3.New(s.Client, settings, self, etcdv3.Options{Lease: lease})
		}
	}
	if err != nil {
		return err
	}
	for err == nil { // until it is killed
		var w rendezvous.World
		if w, err = b.Join(ctx); err == nil {
			<-w.Changed
		}
	}
	return err
}
