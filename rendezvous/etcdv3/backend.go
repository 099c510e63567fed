// Package etcdv3 is a rendezvous on etcd's leases and watches, for worlds without torch agents: a protocol of our own,
// in which a world of n agents costs O(n) messages and O(n) bytes, nobody polls, and a lost agent is noticed by its
// neighbours, or else by its lease.
//
// Keys, all below <prefix>/<run>/, values in JSON:
//
//	agents/<id>        an agent: host, workers, a free port, what it asks for; on the agent's lease
//	head/leader        who decides; on that agent's lease
//	head/world         version and state of the run, and where its assignments are; on the run's lease
//	worlds/<dir>/<id>  an agent's ranks in one version; on the run's lease
//	gone/<id>          which agent removes that one, having found it gone; on the lease of the one that is removed
//
// An agent joins in one transaction, which creates its key, makes it the leader if there is none, and reads head/world.
// It then watches head/, two small keys. Only the leader watches agents/. To form a world it writes the assignments in
// batches, into a directory that is never used twice, and last head/world, upon which each agent reads its own
// assignment. Every write of the leader compares the leader's key and the revision of head/world, which fences off a
// leader that died, or that was stopped and does not know that it was replaced.
//
// When the leader's key is deleted all agents see it, but only candidates campaign: agents that know of no older one
// alive. The rank below is older by construction; its name is in the assignment, and its key is watched. This replaces
// the usual range query for the predecessor, for which the store reads all keys: n joins would cost it n². A
// candidate that finds another leader does nothing.
//
// A lost member ends the version at once (state forming). The survivors stop their workers and call Join, which says so
// in their key; only then an agent counts for the next version, with a port that is free then. The leader waits for
// members that have not called yet beyond the last call, at most for Options.Grace. Newcomers gather for Options.Pause;
// those beyond the maximum wait without a message to the others.
//
// A lease is the store's sign of life, and long, so that an agent that only the store does not hear is kept. Neighbours
// have another: each agent of a world holds a TCP connection to two others, which listen on a port that is in their
// keys. When the connection breaks, and the kernel of that machine refuses the next one, or nothing answers for 1.9 s,
// the neighbour revokes the lost agent's lease, from which on all is as if it had ended by itself. It does so only
// while no other does the same to it, so that of two that find each other gone one stays. Who takes somebody for gone
// must have been connected before, and have reached the store just before and after: an agent that is cut off from
// everything finds all others silent, and says nothing. As the store may be on this very machine, silence counts only
// beside the answer of a witness: another neighbour, or another agent of the run on another machine, is dialled at the
// same time, and greets before that dial fails. Who has nobody to ask, as one of two agents, decides without. The
// kernels' answers count and no heartbeat of a process, so that one that is stopped or starved is not taken for lost.
// Nothing is believed that comes over the connection, but for who is at its other end.
//
// Two agents that reach the store and not each other are a loss, of whoever is missed first: workers that train could
// not go on either. It joins as a new agent, and nobody who has never reached it takes it for gone again.
//
// An agent whose lease has ended, as after a stop of its process, considers its world lost and joins as a new agent.
// That its lease has ended it hears from the store: while that does not answer, the world goes on.
// The leader refreshes the run's lease: Options.TTL after the last agent has left, or the run has ended, its keys
// expire.
package etcdv3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
)

// Options are what the agents of a run may differ in. The zero value of each means its default.
type Options struct {
	Prefix string // of all keys, default /tegen/rendezvous
	// how long an agent that the store does not hear is considered alive, in seconds, default 20 s, at least 2 s
	Lease time.Duration
	TTL   time.Duration // how long a run without agents, or that has ended, is kept, default 10 min
	Pause time.Duration // how long newcomers gather before a running world is stopped for them, default 1 s
	Grace time.Duration // how long to wait for members of the last world after the last call, default 30 s
	// Port finds a port that is free on this machine, for the worker of rank 0. Default: the system's choice.
	Port func() (int, error)
	// Listen opens the port where neighbours watch this agent. Default: one that is free, at the agent's address.
	Listen func() (net.Listener, error)
	// Apart leaves the agent's loss to its lease, and those of others to theirs: it neither watches nor is watched.
	Apart bool
	Log   *slog.Logger

	verdictAge time.Duration // after which what a dial said about a neighbour is out of date, default 5 s
	claimAge   time.Duration // after which another's claim to remove this agent is void, default 5 s, above storeLimit
}

// Stats counts what an agent has exchanged with the store.
type Stats struct {
	Requests   int64 // without keep-alives
	Events     int64 // messages of watches; one may hold many changes
	KeepAlives int64
	Writes     int64 // keys put, at the agent's request; deletions are not counted
}

type counters struct{ requests, events, keepAlives, writes atomic.Int64 }

// Backend is a rendezvous.Backend. Several may share a client.
type Backend struct {
	client   *clientv3.Client
	settings rendezvous.Settings
	agent    rendezvous.Agent
	options  Options
	keys     keys
	counters counters
	session  *session // nil before the first Join, and once it has ended
}

var _ rendezvous.Backend = (*Backend)(nil)

// New returns the backend of one agent. The client stays the caller's, and is to be closed after the backend.
func New(c *clientv3.Client, s rendezvous.Settings, a rendezvous.Agent, o Options) (*Backend, error) {
	o.Prefix, o.Lease = cmp.Or(o.Prefix, "/tegen/rendezvous"), cmp.Or(o.Lease, 20*time.Second)
	o.TTL, o.Pause, o.Grace = cmp.Or(o.TTL, 10*time.Minute), cmp.Or(o.Pause, time.Second),
		cmp.Or(o.Grace, 30*time.Second)
	o.verdictAge, o.claimAge = cmp.Or(o.verdictAge, 5*time.Second), cmp.Or(o.claimAge, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Port == nil {
		o.Port = freePort
	}
	if o.Listen == nil {
		o.Listen = func() (net.Listener, error) { return listen(a.Host) }
	}
	switch {
	case s.RunID == "" || a.ID == "":
		return nil, errors.New("the id of the run or of the agent is empty")
	case s.Min < 1 || s.Max < s.Min:
		return nil, fmt.Errorf("a world of %d to %d agents: want 1 ≤ min ≤ max", s.Min, s.Max)
	case o.Lease < 2*time.Second || o.TTL < 2*time.Second:
		return nil, errors.New("a lease and a run's TTL must be at least 2 s")
	}
	b := &Backend{client: c, settings: s, agent: a, options: o}
	b.keys = newKeys(o.Prefix, s.RunID)
	return b, nil
}

// keys are a run's.
type keys struct{ agents, head, leader, world, worlds, gone string }

func newKeys(prefix, run string) keys {
	base := strings.TrimSuffix(prefix, "/") + "/" + url.PathEscape(run) + "/"
	return keys{
		base + "agents/", base + "head/", base + "head/leader", base + "head/world", base + "worlds/", base + "gone/",
	}
}

func (k keys) agent(id string) string { return k.agents + url.PathEscape(id) }

func (k keys) goner(id string) string { return k.gone + url.PathEscape(id) }

func (k keys) dir(dir string) string { return k.worlds + dir + "/" }

func (k keys) place(dir, id string) string { return k.dir(dir) + url.PathEscape(id) }

func freePort() (int, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Stats may be called at any time.
func (b *Backend) Stats() Stats {
	c := &b.counters
	return Stats{c.requests.Load(), c.events.Load(), c.keepAlives.Load(), c.writes.Load()}
}

// Join is described at rendezvous.Backend.
func (b *Backend) Join(ctx context.Context) (rendezvous.World, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if b.settings.Join > 0 {
		wait, cancel = context.WithTimeoutCause(ctx, b.settings.Join, rendezvous.ErrTimeout)
	}
	defer cancel()
	port, err := b.options.Port()
	if err != nil {
		return rendezvous.World{}, err
	}
	for {
		r := b.call(wait, evJoin{port}, true)
		if errors.Is(r.err, errLost) {
			continue // as a new agent
		}
		if r.err != nil && wait.Err() != nil {
			r.err = context.Cause(wait)
			err := b.leave(context.WithoutCancel(ctx))
			if err != nil {
				b.options.Log.Warn("leaving the run", "run", b.settings.RunID, "agent", b.agent.ID, "err", err)
			}
		}
		if r.err != nil {
			return rendezvous.World{}, fmt.Errorf("joining run %s: %w", b.settings.RunID, r.err)
		}
		return r.world, nil
	}
}

// Finish is described at rendezvous.Backend. It returns nil once all have finished, ErrClosed if another has failed for
// good, and the context's cause if that ends first: then the others go on without waiting for this agent.
func (b *Backend) Finish(ctx context.Context) error {
	r := b.call(ctx, evFinish{}, false)
	if r.err != nil && ctx.Err() != nil {
		r.err = errors.Join(context.Cause(ctx), b.leave(context.WithoutCancel(ctx)))
	}
	if r.err != nil {
		return fmt.Errorf("finishing run %s: %w", b.settings.RunID, r.err)
	}
	return nil
}

// Fail is described at rendezvous.Backend. It returns once the run is closed.
func (b *Backend) Fail(ctx context.Context) error {
	for {
		r := b.call(ctx, evFail{}, true)
		switch {
		case errors.Is(r.err, rendezvous.ErrClosed):
			return nil
		case errors.Is(r.err, errLost) && ctx.Err() == nil:
		case r.err != nil:
			return fmt.Errorf("closing run %s: %w", b.settings.RunID, r.err)
		default:
			return nil
		}
	}
}

// Leave is described at rendezvous.Backend.
func (b *Backend) Leave(ctx context.Context) error {
	if err := b.leave(ctx); err != nil {
		return fmt.Errorf("leaving run %s: %w", b.settings.RunID, err)
	}
	return nil
}

func (b *Backend) leave(ctx context.Context) error {
	s := b.session
	if s == nil {
		return nil
	}
	b.session = nil
	s.stop()
	// After its lease's time the agent is gone without having said so.
	ctx, cancel := context.WithTimeout(ctx, b.options.Lease)
	defer cancel()
	return s.revoke(ctx)
}

// Close is described at rendezvous.Backend. The agent's key exists until a neighbour misses it, or its lease ends.
func (b *Backend) Close() error {
	if b.session != nil {
		b.session.stop()
		b.session = nil
	}
	return nil
}

// call hands a call of the user to the session, and waits for its result. Only some start a session.
func (b *Backend) call(ctx context.Context, ev event, starts bool) result {
	if b.session == nil {
		if !starts {
			return result{err: errLost}
		}
		b.session = b.start()
	}
	s := b.session
	c := request{ev, make(chan result, 1)}
	select {
	case s.calls <- c:
	case <-s.ended:
	case <-ctx.Done():
		return result{err: context.Cause(ctx)}
	}
	var r result
	select {
	case r = <-c.answer:
	case <-ctx.Done():
		return result{err: context.Cause(ctx)}
	case <-s.ended:
		select { // the session may have answered just before
		case r = <-c.answer:
		default:
			r = s.verdict(ev)
		}
	}
	if r.err != nil || r.over {
		<-s.ended
		b.session = nil
	}
	return r
}
