package tcpstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits keep clients that err or mean harm from taking what others need. What breaks one is cut off: the protocol has
// no other answer.
type Limits struct {
	Lengths
	Bounds
	Connections int
	Partial     int // bytes of messages that have not yet come whole, over all connections
	// bytes of replies that clients have not read, over all connections; who has most is cut off
	Unsent   int
	Unread   time.Duration // for which a client may read nothing of replies that are under way
	First    time.Duration // from the connection to its first whole message; none is asked for afterwards
	DeadPeer time.Duration // until a machine that no longer answers is given up
}

// DefaultLimits are those of a server that has about 1 GiB for itself. torch's own server takes keys of 9,000 bytes and
// values of 9 MiB; its other implementation draws the line at 8 KiB, 8 MiB and 131,072 keys in a list.
func DefaultLimits() Limits {
	return Limits{
		Lengths:     Lengths{Key: 64 << 10, Value: 16 << 20, List: 128 << 10, Message: 64 << 20},
		Bounds:      Bounds{Runs: 10_000, Keys: 1 << 20, MemberWaits: 64, Waits: 1 << 17},
		Connections: 20_000, First: 30 * time.Second, DeadPeer: 90 * time.Second, Unread: 60 * time.Second,
	}.Sized(512 << 20)
}

// Sized has room for so many bytes of keys and values in all, and half as much each for one run, so that it cannot take
// the others' room; for messages that come; and for replies that wait, so that one of all values of a run may.
func (l Limits) Sized(bytes int) Limits {
	l.Bytes, l.RunBytes = bytes, bytes/2
	l.Partial, l.Unsent = bytes/2+1<<20, bytes/2+1<<20
	return l
}

// Observer receives what happens, for metrics. Its functions return at once; each may be nil.
type Observer struct {
	Request func(o Op, d Dialect, took time.Duration) // carried out; the time does not count waiting
	Refused func(reason string)
}

// Server serves any number of listeners from one store. Make it with New.
type Server struct {
	limits    Limits
	log       *slog.Logger
	observe   Observer
	partial   atomic.Int64
	unsent    unsent
	relieving atomic.Bool  // somebody is being cut off
	warned    atomic.Int64 // when a refusal was last logged, in Unix seconds

	mu        sync.Mutex
	store     *Store
	engine    Engine // nil where the keys are in store
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	hosts     map[string]*host // by address
	byID      map[int32]*conn
	ids       int32
	arrivals  *arrivals
	closing   bool
	idle      chan struct{} // closed once it is closing and there are no runs
	done      sync.WaitGroup
}

// New makes a server. The log may be nil.
func New(l Limits, log *slog.Logger, o Observer) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if o.Request == nil {
		o.Request = func(Op, Dialect, time.Duration) {}
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	return &Server{
		limits: l, log: log, observe: o, store: NewStore(l.Bounds), listeners: map[net.Listener]struct{}{},
		conns: map[*conn]struct{}{},
		hosts: map[string]*host{}, byID: map[int32]*conn{}, arrivals: newArrivals(), idle: make(chan struct{}),
		unsent: unsent{values: map[*byte]*holders{}},
	}
}

// Client is a connection, as an Engine sees it.
type Client interface {
	// Dialect is what the client speaks.
	Dialect() Dialect
	// Send queues a reply. It never blocks.
	Send(r Reply)
	// Refuse cuts the client off: the protocol has no reply that says no.
	Refuse(r *Refusal)
}

// Engine keeps keys elsewhere than in this server's memory. Its methods return at once, and are called by one goroutine
// at a time, with the requests in the order in which they came.
type Engine interface {
	// Do takes a request, whose reply may be sent later. An error is a *Refusal, after which the client is cut off.
	Do(c Client, q Request) error
	// Leave says that a client is gone.
	Leave(c Client)
}

// NewFor makes a server whose keys an engine keeps.
func NewFor(e Engine, l Limits, log *slog.Logger, o Observer) *Server {
	s := New(l, log, o)
	s.engine = e
	return s
}

// Serve accepts until Shutdown or Close, and then returns nil. It closes the listener.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer s.forget(l)
	for wait := time.Duration(0); ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.open(c)
		case s.over():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting TCPStore clients: %w", err)
		default: // no more files for now, or a client gone before it was served
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.log.Warn("accepting a TCPStore client", "error", err, "retry", wait.String())
			time.Sleep(wait)
		}
	}
}

func (s *Server) forget(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	_ = l.Close() // perhaps it is already
}

func (s *Server) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// open serves a connection, unless there are too many.
func (s *Server) open(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	full := len(s.conns) >= s.limits.Connections
	closing := s.closing
	if !full && !closing {
		s.conns[c] = struct{}{}
		s.arrive(c)
		s.done.Add(1)
	}
	s.mu.Unlock()
	switch {
	case full:
		s.refused(c, refuse("connections", "there are %d connections", s.limits.Connections))
		_ = nc.Close()
	case closing:
		_ = nc.Close()
	default:
		go c.serve()
	}
}

// left takes a connection out and closes it.
func (s *Server) left(c *conn) {
	c.stop() // without the lock: closing waits for a read that may want it
	s.mu.Lock()
	defer s.done.Done()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.member != nil && c.member.dialect == Old {
		s.hosts[c.host].spoken--
	}
	s.leave(c)
	if c.member == nil {
		return
	}
	if s.engine != nil {
		s.engine.Leave(c)
	}
	for _, r := range s.store.Leave(c.member) {
		s.log.Info("run is over", "run", r.ID, "state", r.State, "round", r.Round, "keys", r.Keys)
	}
	s.signalIdle()
}

// signalIdle lets Shutdown return once nobody needs the server; the lock is held.
func (s *Server) signalIdle() {
	if s.closing && len(s.store.all) == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// do carries out a message, and hands the replies to the connections in the order in which they came about.
func (s *Server) do(c *conn, q Request) error {
	start := time.Now()
	s.mu.Lock()
	s.awaitTurn(c, q.Op.replied())
	if c.member == nil {
		c.member = s.store.Join(c.decoder.Dialect(), c)
		if c.member.dialect == Old {
			s.hosts[c.host].spoken++
		}
	}
	var result Result
	var err error
	if s.engine != nil {
		err = s.engine.Do(c, q)
	} else {
		result, err = s.doHere(c, q, start)
	}
	s.finish(c)
	if result.Reply != nil {
		c.Send(result.Reply)
	}
	for _, d := range result.Wake {
		d.To.Owner.(*conn).Send(d.Reply)
	}
	s.mu.Unlock()
	s.relieve()
	s.observe.Request(q.Op, c.decoder.Dialect(), time.Since(start))
	return err
}

// doHere carries out a message in this server's memory; the lock is held.
func (s *Server) doHere(c *conn, q Request, now time.Time) (Result, error) {
	before := s.store.serials
	result, err := s.store.Do(c.member, q, now)
	if s.store.serials != before {
		s.begun(c)
	}
	return result, err
}

// begun logs the run that a connection has just begun; the lock is held.
func (s *Server) begun(c *conn) {
	for r := range c.member.runs {
		if r.serial == s.store.serials {
			s.log.Info("run begins", "run", r.id, "dialect", c.member.dialect.String(), "client", c.host)
		}
	}
}

// refused counts, and logs once a second at most: who is refused may come again at once.
func (s *Server) refused(c *conn, err error) {
	var r *Refusal
	if !errors.As(err, &r) {
		return
	}
	s.observe.Refused(r.Reason)
	now := time.Now().Unix()
	if last := s.warned.Load(); last != now && s.warned.CompareAndSwap(last, now) {
		s.log.Warn("cutting off a TCPStore client", "client", c.host, "reason", r.Reason, "error", r.Text)
	}
}

// accompanied says that a client of the old dialect at the same address has spoken: a silent connection is its second.
func (s *Server) accompanied(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[c.host].spoken > 0
}

func (s *Server) grow(n int) error {
	if s.partial.Add(int64(n)) > int64(s.limits.Partial) {
		s.partial.Add(-int64(n))
		return refuse("memory", "messages under way take %d bytes", s.limits.Partial)
	}
	return nil
}

func (s *Server) release(n int) { s.partial.Add(-int64(n)) }

// Runs is what is known of all runs, the oldest first.
func (s *Server) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Runs()
}

// Stats are sums over all runs.
type Stats struct {
	Sums
	Connections int
	Partial     int // bytes of messages under way
	Unsent      int // bytes of replies that clients have not read
}

// Stats counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{s.store.Sums(), len(s.conns), int(s.partial.Load()), s.unsent.sum()}
}

// Shutdown stops accepting, waits until the last run has gone by itself, at most for the context's time, and cuts what
// is left. The error says how many runs that were.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting()
	var err error
	select {
	case <-s.idle:
	case <-ctx.Done():
		if n := len(s.Runs()); n > 0 {
			err = fmt.Errorf("waiting for %d runs to end: %w", n, context.Cause(ctx))
		}
	}
	return errors.Join(err, s.Close())
}

func (s *Server) stopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for l := range s.listeners {
		_ = l.Close() // Serve returns by it
	}
	s.signalIdle()
}

// Close stops accepting and cuts all connections.
func (s *Server) Close() error {
	s.stopAccepting()
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.stop()
	}
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals.close()
	return nil
}

// ending is how a connection ended: nil for every end that is the client's own business.
func ending(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
