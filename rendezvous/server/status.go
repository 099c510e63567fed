package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/gate"
)

// Run is a line of /runs.
type Run struct {
	ID           string     `json:"id"`  // empty for TCPStore clients without a rendezvous
	API          string     `json:"api"` // etcd-v2, c10d or proxies
	Path         string     `json:"path,omitempty"`
	Version      string     `json:"version,omitempty"`     // c10d calls it the round
	State        string     `json:"state,omitempty"`       // torch's on etcd-v2; on c10d what key names tell
	Participants int        `json:"participants"`          // agents of the world
	Waiting      int        `json:"waiting"`               // agents for the next world; c10d: waiting connections
	Connections  int        `json:"connections,omitempty"` // proxies that have written
	Keys         int        `json:"keys,omitempty"`
	LastChange   *time.Time `json:"lastChange,omitempty"`
}

// Runs are those of all APIs, by their names.
func (s *Server) Runs(ctx context.Context) ([]Run, error) {
	out := []Run{}
	if behind := s.opened.Load(); behind != nil && behind.keys != nil {
		runs, err := behind.keys.Runs(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the runs: %w", err)
		}
		for _, r := range runs {
			out = append(out, Run{
				ID: r.ID, API: apiKeys, Path: r.Path, Version: r.Version, State: r.Status, Participants: r.Participants,
				Waiting:    r.Waiting,
				LastChange: moment(r.Changed),
			})
		}
	}
	if s.gate != nil {
		for _, r := range s.gate.Runs() {
			out = append(out, Run{
				ID: r.ID, API: apiProxies, Connections: r.Proxies, Keys: r.Keys, LastChange: moment(r.Changed),
			})
		}
	}
	if s.c10d != nil {
		for _, r := range s.c10d.Runs() {
			run := Run{
				ID: r.ID, API: apiC10d, State: string(r.State), Participants: r.Agents, Waiting: r.Waiting,
				Connections: r.Connections,
				Keys:        r.Keys, LastChange: moment(r.Changed),
			}
			if r.Round >= 0 {
				run.Version = strconv.Itoa(r.Round)
			}
			out = append(out, run)
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.API, b.API)) })
	return out, nil
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// readyTimeout is for a store that does not answer: probes ask each few seconds.
const readyTimeout = 2 * time.Second

// ready asks the store for a key, which it only answers while a majority of it agrees.
func (s *Server) ready(ctx context.Context) error {
	behind := s.opened.Load()
	switch {
	case s.draining.Load():
		return errors.New("shutting down")
	case !s.open.Load():
		return errors.New(s.notOpen())
	case behind == nil:
		return nil // there is the TCPStore alone
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	key := "tegen/ready"
	if behind.keys == nil { // the etcd's user may be let at nothing else
		key = gate.Prefix + "ready"
	}
	if _, err := behind.store.Get(ctx, key, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("asking the store: %w", err)
	}
	return behind.store.Room() // without room it refuses writes
}

// full is 1 where the store's disk has no room for writes, so that it takes none, or does not open. It is not known
// before the store has been opened.
func (s *Server) full() (gauge float64, known bool) {
	if behind := s.opened.Load(); behind != nil {
		if behind.store.Room() != nil {
			return 1, true
		}
		return 0, true
	}
	return 1, s.closed.Load() != nil // which is set for nothing else
}

func (s *Server) statusHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.ready(r.Context()); err != nil {
			reply(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		reply(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /runs", func(w http.ResponseWriter, r *http.Request) {
		if !local(r, s.config.Hosts) {
			reply(w, http.StatusForbidden, "runs are listed for requests from this machine alone, such as those that "+
				"kubectl port-forward forwards")
			return
		}
		if !s.open.Load() && s.closed.Load() == nil { // else there are those of the TCPStore
			reply(w, http.StatusServiceUnavailable, s.notOpen())
			return
		}
		runs, err := s.Runs(r.Context())
		if err != nil {
			reply(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(map[string]any{"runs": runs}) // the client has gone
	})
	return mux
}

func reply(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // the client has gone
}
