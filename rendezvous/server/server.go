// Package server is tegen-rendezvous serve: it opens the store, puts the doors
// in front of it, and tells how they do. Door 1 is etcd's v2 keys API over
// HTTP, door 2 c10d's TCPStore; the status door has health, metrics and runs.
// What comes in is a Config; what comes out serves until Shutdown, which waits
// for the runs whose connections must not be cut.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Config is what serve's flags say. An address is host:port; empty means that the door stays shut.
type Config struct {
	Store        func(context.Context) (*store.Store, error) // of door 1; not called without it
	Client       string                                      // door 1
	TLS          *tls.Config                                 // of door 1; nil for plain HTTP
	C10d         string                                      // door 2
	Status       string
	Keys         keys.Options
	TCPStore     tcpstore.Limits
	Hosts        []string      // names by which clients reach door 1; asked for where it is on a loopback address
	Connections  int           // of door 1; more wait until one is closed
	RunTTL       time.Duration // of runs on door 1 that have none of their own
	Log          *slog.Logger
	Version      string
	StoreTimeout time.Duration // without any progress while the store opens; 0 for 30 s
	ForgetAfter  time.Duration // without a request in a closed run; 0 for 10 s, or 30 s where others serve the store as well
	Quiet        func()        // called before the store is closed: etcd logs the end of its own listeners as errors
}

// Server is the doors that are open.
type Server struct {
	config  Config
	log     *slog.Logger
	opened  atomic.Pointer[opened] // what is behind door 1; nil until the store is open
	c10d    *tcpstore.Server
	metrics *metrics

	doors    map[string]net.Listener
	http     *http.Server // door 1
	status   *http.Server
	draining atomic.Bool
	released atomic.Bool
	open     atomic.Bool            // the doors are, and the store with door 1
	closed   atomic.Pointer[string] // why the store is not open, where that may pass
	failed   chan error
	used     uses // of runs on door 1
	serving  sync.WaitGroup
	stop     context.CancelFunc // ends long polls and what runs beside the doors
	opening  sync.WaitGroup     // of a store whose disk is full
	giveUp   context.CancelFunc // ends that
}

// opened is the store and the keys in it.
type opened struct {
	store *store.Store
	keys  *keys.Keys
}

// Names of the doors, in logs, metrics and /runs.
const (
	doorKeys   = "etcd-v2"
	doorC10d   = "c10d"
	doorStatus = "status"
)

// Start opens all listeners, then the store of door 1, then the doors. Health is answered from the beginning: a store may need
// its time. Nothing is left open where it fails.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 30 * time.Second
	}
	c.ForgetAfter = cmp.Or(c.ForgetAfter, forgetAfter(c.Keys.Alone))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, log: c.Log, doors: map[string]net.Listener{}, failed: make(chan error, 3)}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	for _, door := range []struct{ name, address string }{{doorKeys, s.config.Client}, {doorC10d, s.config.C10d}, {doorStatus, s.config.Status}} {
		if door.address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", door.address)
		if err != nil {
			return fmt.Errorf("opening the %s door: %w", door.name, err)
		}
		s.doors[door.name] = l
	}
	s.metrics = newMetrics(s)
	// It outlives ctx, which is only about the start, and ends with Shutdown.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if l := s.doors[doorStatus]; l != nil {
		s.status = &http.Server{Handler: guarded(l.Addr(), s.config.Hosts, s.statusHandler()), ReadHeaderTimeout: headerTimeout, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
		s.serve(doorStatus, func() error { return s.status.Serve(l) })
	}
	if l := s.doors[doorC10d]; l != nil { // in memory: whatever becomes of the store
		s.c10d = tcpstore.New(s.config.TCPStore, s.log.With("door", doorC10d), s.metrics.c10d())
		s.serve(doorC10d, func() error { return s.c10d.Serve(buffered{l}) })
	}
	if l := s.doors[doorKeys]; l != nil {
		if err := s.openKeys(ctx, background, l); err != nil {
			return err
		}
	} else {
		s.open.Store(true)
	}
	s.log.Info("serving", "version", s.config.Version, "client", s.Address(doorKeys), "c10d", s.Address(doorC10d), "status", s.Address(doorStatus))
	return nil
}

// Address is where a door is open, empty where it is not.
func (s *Server) Address(door string) string {
	if l := s.doors[door]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// serve runs a door until it is shut.
func (s *Server) serve(door string, run func() error) {
	s.serving.Go(func() {
		if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving the %s door: %w", door, err)
		}
	})
}

// Failed tells the first error after which a door is shut for good.
func (s *Server) Failed() <-chan error { return s.failed }

// Shutdown says that it is not ready any more, waits for the runs of door 2 while door 1 goes on, at most for the
// context's time, and then shuts all doors. The error says what was cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	var err error
	if s.c10d != nil {
		if n := len(s.c10d.Runs()); n > 0 {
			s.log.Info("waiting for runs to end", "door", doorC10d, "runs", n)
		}
		err = s.c10d.Shutdown(ctx)
	}
	return errors.Join(err, s.release())
}

// closing is how long requests of door 1 may take to end: all but long polls, which are told at once, take moments.
const closing = 5 * time.Second

// release shuts what is open, once.
func (s *Server) release() error {
	if s.released.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	var errs []error
	if s.giveUp != nil {
		s.giveUp()
		s.opening.Wait()
	}
	behind := s.opened.Load()
	if behind != nil {
		behind.keys.EndWaits()
	}
	if s.http != nil { // writes that are under way are answered
		if err := s.http.Shutdown(ctx); err != nil {
			s.log.Warn("connections were cut off", "door", doorKeys, "error", err)
			errs = append(errs, s.http.Close())
		}
	}
	if s.stop != nil {
		s.stop()
	}
	if s.c10d != nil {
		errs = append(errs, s.c10d.Close())
	}
	if s.status != nil {
		errs = append(errs, s.status.Close())
	}
	for _, l := range s.doors {
		_ = l.Close() // those not served by then
	}
	s.serving.Wait()
	if behind != nil {
		errs = append(errs, behind.close(s.config.Quiet))
	}
	return errors.Join(errs...)
}
