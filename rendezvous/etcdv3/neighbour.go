package etcdv3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	mostClients   = 32                      // connections that a listener holds at a time
	greetingLimit = 10 * time.Second        // for the greeting
	dialLimit     = 1900 * time.Millisecond // for a neighbour's machine to answer at all
	leastSilence  = 1500 * time.Millisecond // before one that no route leads to is considered gone; less than a dial
	storeLimit    = 2 * time.Second         // for each of the two requests around such a dial
	mostRedial    = 2 * time.Second
)

// After unreachableAfter dials without an answer the log says so, and the next ones are unreachablePause apart.
const (
	unreachableAfter = 10
	unreachablePause = time.Minute
)

// greeting is what an agent's listener sends to everyone, so that a neighbour knows whom it has reached.
func greeting(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "tegen-rendezvous " + hex.EncodeToString(sum[:16]) + "\n"
}

// listen opens the port where neighbours watch an agent, at its address alone if this machine has that.
func listen(host string) (net.Listener, error) {
	if net.ParseIP(host) != nil {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err == nil {
			return l, nil
		} // an address that others are forwarded from
	}
	return net.Listen("tcp", ":0")
}

// listen begins to answer neighbours, until the session ends. It returns the port, 0 for none.
func (s *session) listen() int {
	if s.b.settings.Max == 1 || s.b.options.Apart {
		return 0
	}
	l, err := s.b.options.Listen()
	if err != nil {
		s.b.options.Log.Warn("neighbours cannot watch this agent: its loss is noticed by its lease alone",
			"run", s.b.settings.RunID, "agent", s.b.agent.ID, "err", err)
		return 0
	}
	context.AfterFunc(s.ctx, func() { _ = l.Close() })
	go s.serve(l, greeting(s.b.keys.agent(s.b.agent.ID)))
	return l.Addr().(*net.TCPAddr).Port
}

// serve greets whoever connects, and holds the connection: that it breaks is the message. Clients beyond mostClients
// are accepted and disconnected, since a full queue would look like a machine that is silent.
func (s *session) serve(l net.Listener, text string) {
	free := make(chan struct{}, mostClients)
	for {
		conn, err := l.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // as without a free file descriptor
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case free <- struct{}{}:
			go func() {
				s.greet(conn, text)
				<-free
			}()
		default:
			_ = conn.Close()
		}
	}
}

func (s *session) greet(conn net.Conn, text string) {
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteDeadline(time.Now().Add(greetingLimit))
	if _, err := io.WriteString(conn, text); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // neighbours send nothing, and who does is disconnected
	}
}

// watchNeighbours holds connections to these agents and no others.
func (s *session) watchNeighbours(all []neighbour) {
	links := make(map[neighbour]*link, len(all))
	for _, n := range all {
		l := s.links[n]
		if delete(s.links, n); l == nil {
			var ctx context.Context
			log := s.b.options.Log.With("run", s.b.settings.RunID, "agent", s.b.agent.ID, "neighbour", n.ID)
			l = &link{addr: n.Addr, greeting: greeting(s.b.keys.agent(n.ID)), mine: s.machine.created, log: log}
			ctx, l.cancel = context.WithCancel(s.ctx)
			go s.monitor(ctx, n, l)
		}
		links[n] = l
	}
	for _, l := range s.links {
		l.cancel()
	}
	s.links = links
}

// link is the connection to a neighbour.
type link struct {
	addr          string // once reached the address that was, which a name may leave, and which stays
	greeting      string
	mine          int64 // create revision of the key of the agent that holds it
	log           *slog.Logger
	cancel        context.CancelFunc
	reached       atomic.Bool // that agent has answered
	broken        time.Time   // when the connection broke
	silenceLogged bool        // the log says that it has been silent since, and that no witness answered
	early         bool        // a dial has failed since before the witnesses had answered
	claim         claim       // about this agent
}

// errNotNeighbour says that something else answers at a neighbour's address, or nothing that can be understood.
var errNotNeighbour = errors.New("the neighbour does not answer as such")

// hold connects, and returns nil once a connection to the neighbour itself has broken. No deadline of ours is part of
// that, but for who never says who it is: whether a peer is silent is the kernels' to say, which also answer for a
// process that is stopped or starved. Two probes and two SYN in a row have to be lost, so that a network that loses one
// packet in a hundred breaks little. A machine that falls silent is missed after 2 to 3 s of them, and the dial: within
// 5 s.
func (l *link) hold(ctx context.Context) error {
	d := net.Dialer{
		Control: func(_, _ string, c syscall.RawConn) error {
			limitSilence(c, dialLimit)
			return nil
		},
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2},
	}
	conn, err := d.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	if raw, err := conn.(*net.TCPConn).SyscallConn(); err == nil {
		limitSilence(raw, 0) // keep-alives are sooner
	}
	text := make([]byte, len(l.greeting))
	_ = conn.SetReadDeadline(time.Now().Add(greetingLimit)) // what else listens there may say nothing
	if _, err := io.ReadFull(conn, text); err != nil || string(text) != l.greeting {
		return errNotNeighbour
	}
	_ = conn.SetReadDeadline(time.Time{})
	if !l.reached.Load() {
		l.addr = conn.RemoteAddr().String()
		l.reached.Store(true)
	}
	l.log.Debug("watching a neighbour", "addr", l.addr)
	_, _ = conn.Read(text[:1])
	l.broken = time.Now()
	return nil
}

// gone says whether a dial shows that the neighbour's process, or its machine, is gone. The kernel of its machine
// refuses once the listener is closed, which lives as long as the agent. A firewall that begins to refuse looks the
// same: two agents that it parts are a loss too. Other errors, as of too many files here, or of something between the
// two that accepts in its place, say nothing.
func (l *link) gone(err error) bool {
	return l.reached.Load() && (refused(err) || silent(err) && time.Since(l.broken) >= leastSilence)
}

// monitor holds a connection to a neighbour, and revokes its lease when it is gone. Where the two were never connected,
// as behind a firewall, the neighbour is left to its lease.
//
// A dial counts only between two answers of the store, of before and after, in a short time: this agent may be the one
// that has lost its connections, and what it found out meanwhile is worth nothing. As the store may be on this very
// machine, silence counts only beside the answer of a witness, too. The lease is of that very agent: one that comes
// after it under its name has another.
func (s *session) monitor(ctx context.Context, n neighbour, l *link) {
	pause := leastPause
	for tries := 1; ; tries++ {
		var lease clientv3.LeaseID
		if l.reached.Load() {
			var err error
			if lease, err = s.leaseOf(ctx, n); err == nil && lease == 0 {
				return // it has left, or others were faster
			}
		}
		answered := time.Now()
		gone, err := s.try(ctx, n, l, lease != 0)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && time.Since(answered) > mostRedial:
			pause = leastPause
		case gone && time.Since(answered) < s.b.options.verdictAge:
			if s.evict(ctx, n, lease, l, err) {
				return
			}
		case err != nil && tries == unreachableAfter && !l.reached.Load():
			l.log.Info("a neighbour is not reached: its loss is noticed by its lease", "addr", n.Addr, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if pause = min(2*pause, mostRedial); tries >= unreachableAfter && !l.reached.Load() {
			pause = unreachablePause
		}
	}
}

// try is hold, and says whether the dial shows that the neighbour is gone, if that is asked.
func (s *session) try(ctx context.Context, n neighbour, l *link, asked bool) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	witnessed := make(chan bool, 1)
	if asked {
		asking, stop := context.WithTimeout(ctx, witnessLimit)
		defer stop()
		ask := func() { witnessed <- s.witness(asking, n) }
		if l.early {
			ask()
		} else {
			go ask()
		}
	}
	err := l.hold(ctx)
	if err == nil {
		l.early, l.silenceLogged = false, false
		return false, nil
	}
	return asked && l.lost(err, witnessed), err
}

// lost says whether a dial's error shows that the neighbour is gone. Silence does only if a witness answered before the
// dial failed: one that answers later may be the first to be reached by a network that has just come back. A dial that
// the network answers at once, as where no route leads to the neighbour, is too early for that, and so the next one
// comes after the witnesses' answer. Until leastSilence is over there are several, so that this costs no time.
func (l *link) lost(err error, witnessed <-chan bool) bool {
	gone := l.gone(err)
	if refused(err) {
		return gone
	}
	select {
	case answered := <-witnessed:
		if gone && !answered && !l.silenceLogged {
			l.silenceLogged = true
			l.log.Info("a neighbour is silent, and nobody else has answered: its loss is noticed by its lease",
				"err", err)
		}
		return gone && answered
	default:
		l.early = l.early || silent(err)
		return false
	}
}

// leaseOf reads the lease of a neighbour, 0 if that very agent is no longer there.
func (s *session) leaseOf(ctx context.Context, n neighbour) (clientv3.LeaseID, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	s.b.counters.requests.Add(1)
	r, err := s.b.client.Get(ctx, s.b.keys.agent(n.ID))
	if err != nil || len(r.Kvs) == 0 || r.Kvs[0].CreateRevision != n.Created {
		return 0, err
	}
	return clientv3.LeaseID(r.Kvs[0].Lease), nil
}

// evict deletes all keys of a neighbour that is gone, which all others notice as the end of its lease. It returns
// whether that is done.
//
// Two agents may find each other gone at once. So an agent first says in a key, on the lease that is to end, whom it
// removes, and only if there is no such key about itself: whoever is faster stays. One that ends before it has revoked
// the lease leaves that key behind, and so the other one could remove nobody as long as it lives. So a key that has
// stayed for claimAge counts no more: by then its author has long given up.
func (s *session) evict(ctx context.Context, n neighbour, lease clientv3.LeaseID, l *link, why error) bool {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	k, me := s.b.keys, s.b.agent.ID
	unclaimed := l.claim.over(k.goner(me), s.b.options.claimAge)
	s.b.counters.requests.Add(2)
	r, err := s.b.client.Txn(ctx).
		If(created(k.agent(me), l.mine), unclaimed, created(k.agent(n.ID), n.Created)).
		Then(clientv3.OpDelete(k.goner(me)), clientv3.OpPut(k.goner(n.ID), me, clientv3.WithLease(lease))).
		Else(clientv3.OpGet(k.goner(me))).Commit()
	if err == nil && !r.Succeeded {
		l.claim.seen(r.Responses[0].GetResponseRange().Kvs)
		return false // the next look says which of the two is gone
	}
	if err == nil {
		s.b.counters.writes.Add(1)
		_, err = s.b.client.Revoke(ctx, lease)
	}
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return true
	case err != nil:
		l.log.Warn("removing a neighbour that is gone", "err", err)
		return false
	}
	l.log.Info("a neighbour is gone", "err", why)
	return true
}

// claim is a key by which another agent says that it removes this one.
type claim struct {
	rev   int64     // of the key, 0: none
	since time.Time // first seen
}

func (c *claim) seen(kvs []*mvccpb.KeyValue) {
	switch {
	case len(kvs) == 0:
		*c = claim{}
	case kvs[0].ModRevision != c.rev:
		*c = claim{kvs[0].ModRevision, time.Now()}
	}
}

// over holds where there is no such key, or only one that has been seen for so long.
func (c *claim) over(key string, age time.Duration) clientv3.Cmp {
	rev := int64(0)
	if c.rev != 0 && time.Since(c.since) >= age {
		rev = c.rev
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev)
}

// refused says that the kernel at an address says that nobody listens there.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) && !notDialled(err) }

// silent says that no kernel answers at an address.
func silent(err error) bool {
	return (errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)) && !notDialled(err)
}

// notDialled says that an error is of something else than the dial, such as a name server that refuses.
func notDialled(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return !errors.As(err, &op) || op.Op != "dial" || errors.As(err, &dns)
}

// address is where a neighbour listens, "" where it does not.
func (e *entry) address() string {
	if e.Listen == 0 {
		return ""
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Listen))
}
