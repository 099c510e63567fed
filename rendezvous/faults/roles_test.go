package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/etcd"
	"github.com/tegen-dev/tegen/rendezvous/etcdv3"
	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// storeSpec configures a store's process.
type storeSpec struct{ Backend, Listen, Dir string }

// agentSpec configures an agent's process.
type agentSpec struct {
	Name, Backend, Endpoint string
	Min, Max                int
	Rate                    float64 // its clock runs so much faster than others'
}

// play runs a process of this test.
func play(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	text := []byte(os.Getenv("TEGEN_FAULTS_SPEC"))
	var err error
	switch role {
	case "store":
		var spec storeSpec
		if err = json.Unmarshal(text, &spec); err == nil {
			err = playStore(ctx, spec)
		}
	case "agent":
		var spec agentSpec
		if err = json.Unmarshal(text, &spec); err == nil {
			err = playAgent(ctx, spec)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// playStore serves etcd, or the v2 keys API on it.
func playStore(ctx context.Context, spec storeSpec) error {
	e := store.Embedded{Dir: filepath.Join(spec.Dir, "data")}
	if spec.Backend == "etcd-v3" {
		e.Listen = spec.Listen
	}
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if spec.Backend == "etcd" {
		api, err := keys.Open(ctx, s.Client, keys.Options{Advertise: []string{"http://" + spec.Listen}})
		if err != nil {
			return err
		}
		defer api.Close()
		l, err := net.Listen("tcp", spec.Listen)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: api.Handler()}
		go func() { _ = server.Serve(l) }()
		defer func() { _ = server.Close() }()
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	<-ctx.Done()
	return nil
}

// playAgent joins again and again, and reports every world that it is in.
func playAgent(ctx context.Context, spec agentSpec) error {
	b, err := open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	orders := make(chan string)
	go func() {
		defer close(orders)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			orders <- in.Text()
		}
	}()
	out := json.NewEncoder(os.Stdout)
	for {
		w, left, err := join(ctx, b, orders)
		switch {
		case left:
			return b.Leave(ctx)
		case errors.Is(err, rendezvous.ErrClosed):
			return err
		case err != nil: // the store may be away for longer than a join lasts
			_, _ = fmt.Fprintln(os.Stderr, err)
			continue
		}
		_ = out.Encode(map[string]any{
			"Event": "final",
			"World": sighting{w.Version, w.Rank, w.Size, w.Base, w.Total, fmt.Sprint(w.MasterAddr, ":", w.MasterPort)},
		})
		select {
		case <-w.Changed:
		case order, ok := <-orders:
			_ = out.Encode(map[string]any{"Event": "over"})
			if !ok || order == "leave" {
				return b.Leave(ctx)
			}
			continue
		}
		_ = out.Encode(map[string]any{"Event": "over"})
	}
}

// join waits for a world, or for the order to leave.
func join(ctx context.Context, b rendezvous.Backend, orders <-chan string) (w rendezvous.World, left bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		w   rendezvous.World
		err error
	}
	joined := make(chan result, 1)
	go func() {
		w, err := b.Join(ctx)
		joined <- result{w, err}
	}()
	for {
		select {
		case r := <-joined:
			return r.w, false, r.err
		case order, ok := <-orders:
			if !ok || order == "leave" {
				cancel()
				<-joined
				return w, true, nil
			}
		}
	}
}

// log is where a process writes its errors; its end is shown where the test fails.
func log(t *testing.T, dir, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.Close()
		if text, err := os.ReadFile(f.Name()); err == nil && t.Failed() && len(text) > 0 {
			t.Logf("%s:\n%s", name, text[max(0, len(text)-2000):])
		}
	})
	return f
}

const joinTimeout = 30 * time.Second

// open makes an agent's backend. Its clock is not the others': all that it waits for takes it another time.
func open(ctx context.Context, spec agentSpec) (rendezvous.Backend, error) {
	own := func(d time.Duration) time.Duration { return time.Duration(float64(d) / spec.Rate) }
	settings := rendezvous.Settings{
		RunID: "faults", Min: spec.Min, Max: spec.Max, Join: joinTimeout,
		LastCall: own(time.Second),
	}
	self := rendezvous.Agent{ID: spec.Name, Host: "127.0.0.1", Role: "default", Workers: 1}
	said := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if spec.Backend == "etcd" {
		times := torchetcd.Defaults() // with shorter ones, or little would happen in the time that the test has
		times.StateTTL, times.KeepAliveTTL = 5*time.Second, 4*time.Second
		times.Renew, times.PeerPoll, times.Retry = own(1500*time.Millisecond), own(time.Second),
			own(300*time.Millisecond)
		return etcd.Open(etcd.Config{Endpoints: []string{spec.Endpoint}, Timings: times, Log: said}, settings, self)
	}
	var s *store.Store
	for { // the store may be away at this moment
		var err error
		if s, err = (store.External{Endpoints: []string{spec.Endpoint}}).Open(ctx); err == nil {
			break
		}
		_, _ = fmt.Fprintln(os.Stderr, err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return etcdv3.New(s.Client, settings, self,
		etcdv3.Options{Lease: 3 * time.Second, Pause: own(300 * time.Millisecond), Log: said})
}
