package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// openStored opens the store, where an API needs it, and serves the keys API and proxies from it. If the store has no
// room to open, or an etcd elsewhere does not answer, they answer that, and the store is tried again. The other APIs
// are served meanwhile.
func (s *Server) openStored(ctx, background context.Context) error {
	if s.listeners[apiKeys] == nil && s.listeners[apiProxies] == nil {
		s.open.Store(true)
		return nil
	}
	behind, err := s.openStore(ctx)
	if err != nil && (ctx.Err() != nil || !mayPass(err)) {
		return err
	}
	if l := s.listeners[apiKeys]; l != nil {
		s.serveKeys(background, l)
	}
	if err == nil {
		return s.setOpened(background, behind)
	}
	s.reportClosed(err)
	trying, giveUp := context.WithCancel(background)
	s.giveUp = giveUp
	s.opening.Go(func() { s.openLater(trying, background) })
	return nil
}

// mayPass reports whether an error of opening the store is a reason to try again.
func mayPass(err error) bool { return errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrAway) }

// retryInterval is how often a store is tried that could not be opened.
const retryInterval = 5 * time.Second

func (s *Server) openLater(ctx, background context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryInterval):
		}
		behind, err := s.openStore(ctx)
		if err == nil {
			err = s.setOpened(background, behind)
		}
		switch {
		case err == nil:
			s.log.Info("store opened")
			return
		case ctx.Err() != nil:
			return
		case !mayPass(err):
			s.fail(fmt.Errorf("opening the store: %w", err))
			return
		}
		s.reportClosed(err)
	}
}

// fail ends the server, unless it ends already.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

func (s *Server) reportClosed(why error) {
	text := why.Error()
	s.closed.Store(&text)
	s.log.Error("opening the store failed; retrying", "error", why)
}

// setOpened makes the store available to what is served from it, and begins to look after the runs of the keys API.
func (s *Server) setOpened(background context.Context, behind *opened) error {
	s.opened.Store(behind)
	if s.gate != nil {
		if err := s.gate.Open(behind.store.Client, behind.store.Room); err != nil {
			return err
		}
	}
	s.open.Store(true)
	if behind.keys == nil {
		return nil
	}
	s.serving.Go(func() { s.forgetEnded(background, behind.keys) })
	if s.config.RunTTL > 0 {
		s.serving.Go(func() { s.forget(background) })
	}
	return nil
}

// serveProxies answers proxies of torchruns. Until the store is open they are told to come again.
func (s *Server) serveProxies(l net.Listener) {
	o := s.config.Gate
	o.TLS, o.Observer, o.Log = s.config.TLS, s.metrics.proxies(), s.log.With("api", apiProxies)
	s.gate = gate.New(o)
	l = buffered{l}
	if s.config.Connections > 0 {
		l = netutil.LimitListener(l, s.config.Connections)
	}
	s.serve(apiProxies, func() error { return s.gate.Serve(l) })
}

// openStore ends with an error once nothing has advanced for the configured time. A store of our own looks after that
// itself while it starts; of its keys each part that has come counts.
func (s *Server) openStore(ctx context.Context) (*opened, error) {
	st, err := s.config.Store(ctx)
	if err != nil {
		return nil, err
	}
	if s.listeners[apiKeys] == nil {
		return &opened{store: st}, nil
	}
	ctx, advanced, stop := whileAdvancing(ctx, s.config.StoreTimeout, st.Room)
	defer stop()
	options := s.config.Keys
	options.Advanced, options.Room = advanced, st.Room
	options.Failed = func(err error) { s.fail(fmt.Errorf("serving %s: %w", apiKeys, err)) }
	k, err := keys.Open(ctx, st.Client, options)
	if err == nil {
		return &opened{st, k}, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, errors.Join(fmt.Errorf("opening the keys: %w", err), st.Close())
}

// whileAdvancing is a context that ends once nothing has advanced for a time: an etcd without a quorum answers when the
// client is opened, and then no read. On a full disk a tenth of it is enough: a store that has ended there does not
// start again, and the other endpoints wait for this one.
func whileAdvancing(
	ctx context.Context, patience time.Duration, room func() error,
) (_ context.Context, advanced, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stuck := time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("%w: it has sent nothing for %s", store.ErrAway, patience))
	})
	full := time.AfterFunc(patience/10, func() {
		if err := room(); err != nil {
			cancel(err)
		}
	})
	advanced = func() {
		stuck.Reset(patience)
		full.Reset(patience / 10)
	}
	return ctx, advanced, func() {
		stuck.Stop()
		full.Stop()
		cancel(nil)
	}
}

// close closes the keys and the store. etcd logs the end of its own listeners as errors.
func (o *opened) close(quiet func()) error {
	if o.keys != nil {
		o.keys.Close()
	}
	if quiet != nil {
		quiet()
	}
	return o.store.Close()
}

// headerTimeout bounds how long a client may take to say what it wants.
const headerTimeout = 10 * time.Second

// serveKeys serves the keys API. It has no idle timeout: agents keep a connection for an hour between two requests, and
// the number of connections has a limit of its own.
func (s *Server) serveKeys(background context.Context, l net.Listener) {
	l = buffered{l}
	if s.config.Connections > 0 {
		l = netutil.LimitListener(l, s.config.Connections)
	}
	s.http = &http.Server{
		Handler:   s.observed(guarded(l.Addr(), s.config.Hosts, http.HandlerFunc(s.answerKeys))),
		TLSConfig: s.config.TLS, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return background },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState:   s.metrics.connection,
	}
	s.serve(apiKeys, func() error {
		if s.config.TLS != nil {
			return s.http.ServeTLS(l, "", "") // the configuration has the certificate
		}
		return s.http.Serve(l)
	})
}

// answerKeys answers for the keys, or says why there are none yet.
func (s *Server) answerKeys(w http.ResponseWriter, r *http.Request) {
	if behind := s.opened.Load(); behind != nil {
		behind.keys.Handler().ServeHTTP(w, r)
		return
	}
	reply(w, http.StatusServiceUnavailable, s.notOpen())
}

// notOpen says that the store is not open, and why.
func (s *Server) notOpen() string {
	if why := s.closed.Load(); why != nil {
		return "the store is not open yet: " + *why
	}
	return "the store is not open yet"
}
