// Package server serves four APIs: etcd's v2 keys API over HTTP on a store that it
// opens, a gate to that store for the proxies of torchruns, c10d's TCPStore, and
// the status API, which has health, metrics and runs. What comes in is a Config;
// what comes out serves until Shutdown, which waits for the runs whose
// connections must not be cut.
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

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Config of a Server. An address is host:port; where it is empty, the API is not served.
type Config struct {
	Store        func(context.Context) (*store.Store, error) // of keys API and proxies; not called without them
	Client       string                                      // the keys API
	Proxies      string                                      // the gate to the store for proxies of torchruns
	TLS          *tls.Config                                 // of both; nil for none
	C10d         string                                      // the TCPStore
	Status       string
	Keys         keys.Options
	Gate         gate.Options
	TCPStore     tcpstore.Limits
	Hosts        []string      // names by which clients reach the keys API; asked for where it is on a loopback address
	Connections  int           // of the keys API, and of proxies; more wait until one is closed
	RunTTL       time.Duration // of runs on the keys API that have none of their own
	Log          *slog.Logger
	Version      string
	StoreTimeout time.Duration // without any progress while the store opens; 0 for 30 s
	// without a request in a closed run; 0 for 10 s, or 30 s where others serve the store as well
	ForgetAfter time.Duration
	Quiet       func() // called before the store is closed: etcd logs the end of its own listeners as errors
}

// Server is the APIs that are served.
type Server struct {
	config  Config
	log     *slog.Logger
	opened  atomic.Pointer[opened] // the store and the keys; nil until the store is open
	c10d    *tcpstore.Server
	gate    *gate.Gate
	metrics *metrics

	listeners map[string]net.Listener
	http      *http.Server // the keys API
	status    *http.Server
	draining  atomic.Bool
	released  atomic.Bool
	open      atomic.Bool            // all listeners are, and the store of the keys API
	closed    atomic.Pointer[string] // why the store is not open, where that may pass
	failed    chan error
	used      uses // of runs on the keys API
	serving   sync.WaitGroup
	stop      context.CancelFunc // ends long polls and what runs beside the APIs
	opening   sync.WaitGroup     // tries again to open the store (see mayPass)
	giveUp    context.CancelFunc // ends that
}

// opened is the store and the keys in it; keys is nil where the keys API is not served.
type opened struct {
	store *store.Store
	keys  *keys.Keys
}

// Names of the APIs, in logs, metrics and /runs.
const (
	apiKeys    = "etcd-v2"
	apiC10d    = "c10d"
	apiProxies = "proxies"
	apiStatus  = "status"
)

// Start opens all listeners, then the store of the keys API and of proxies, and then serves these. Health is answered
// from the beginning, because a store may need its time. Nothing is left open where it fails.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 30 * time.Second
	}
	c.ForgetAfter = cmp.Or(c.ForgetAfter, forgetAfter(c.Keys.Alone))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, log: c.Log, listeners: map[string]net.Listener{}, failed: make(chan error, 4)}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	for _, api := range []struct{ name, address string }{
		{apiKeys, s.config.Client},
		{apiC10d, s.config.C10d},
		{apiProxies, s.config.Proxies},
		{apiStatus, s.config.Status},
	} {
		if api.address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", api.address)
		if err != nil {
			return fmt.Errorf("opening the %s listener: %w", api.name, err)
		}
		s.listeners[api.name] = l
	}
	s.metrics = newMetrics(s)
	// It outlives ctx, which is only about the start, and ends with Shutdown.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if l := s.listeners[apiProxies]; l != nil {
		s.serveProxies(l)
	}
	if l := s.listeners[apiStatus]; l != nil {
		s.status = &http.Server{
			Handler:           guarded(l.Addr(), s.config.Hosts, s.statusHandler()),
			ReadHeaderTimeout: headerTimeout, IdleTimeout: time.Minute,
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		}
		s.serve(apiStatus, func() error { return s.status.Serve(l) })
	}
	if l := s.listeners[apiC10d]; l != nil { // in memory: whatever becomes of the store
		s.c10d = tcpstore.New(s.config.TCPStore, s.log.With("api", apiC10d), s.metrics.c10d())
		s.serve(apiC10d, func() error { return s.c10d.Serve(buffered{l}) })
	}
	if err := s.openStored(ctx, background); err != nil {
		return err
	}
	said := []any{
		"version", s.config.Version, "client", s.Address(apiKeys), "c10d", s.Address(apiC10d),
		"status", s.Address(apiStatus),
	}
	if at := s.Address(apiProxies); at != "" {
		said = append(said, "proxies", at)
	}
	s.log.Info("serving", said...)
	return nil
}

// Address is where an API listens, empty where it is not served.
func (s *Server) Address(api string) string {
	if l := s.listeners[api]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// serve runs an API until it is closed.
func (s *Server) serve(api string, run func() error) {
	s.serving.Go(func() {
		if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s: %w", api, err))
		}
	})
}

// Failed returns the errors after which an API is no longer served, or the store cannot be opened.
func (s *Server) Failed() <-chan error { return s.failed }

// Shutdown says that it is not ready any more, waits for the runs of the TCPStore while the keys API goes on, at most
// for the context's time, and then closes all listeners. The error says what was cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	var err error
	if s.c10d != nil {
		if n := len(s.c10d.Runs()); n > 0 {
			s.log.Info("waiting for runs to end", "api", apiC10d, "runs", n)
		}
		err = s.c10d.Shutdown(ctx)
	}
	return errors.Join(err, s.release())
}

// closing is how long requests of the keys API may take to end: all but long polls, which end at once, take
// moments.
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
	if behind != nil && behind.keys != nil {
		behind.keys.EndWaits()
	}
	if s.http != nil { // writes that are under way are answered
		if err := s.http.Shutdown(ctx); err != nil {
			s.log.Warn("connections were cut off", "api", apiKeys, "error", err)
			errs = append(errs, s.http.Close())
		}
	}
	if s.gate != nil {
		s.gate.Close(ctx)
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
	for _, l := range s.listeners {
		_ = l.Close() // those not served by then
	}
	s.serving.Wait()
	if behind != nil {
		errs = append(errs, behind.close(s.config.Quiet))
	}
	return errors.Join(errs...)
}
