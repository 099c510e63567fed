package etcdv3

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// batch is how many keys a transaction writes; by default etcd refuses more than 128 operations.
const batch = 100

// The shortest and the longest pause before a failed request is repeated.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// retry repeats a request until it succeeds, or the session ends; all of them are idempotent. While the store is away
// the lease runs out, which ends the session.
func (s *session) retry(what string, f func() error) bool {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		s.b.counters.requests.Add(1)
		err := f()
		if err == nil || s.ctx.Err() != nil {
			return err == nil
		}
		s.b.options.Log.Warn(what, "run", s.b.settings.RunID, "agent", s.b.agent.ID, "err", err)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return false
		}
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and numbers
	}
	return string(b)
}

// decode returns the zero value where no agent of ours wrote the text.
func decode[T any](text []byte) *T {
	v := new(T)
	if json.Unmarshal(text, v) != nil {
		return new(T)
	}
	return v
}

func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

func created(key string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", rev)
}

// grant grants the agent's lease, and keeps it alive.
func (s *session) grant() (clientv3.LeaseID, bool) {
	var r *clientv3.LeaseGrantResponse
	ok := s.retry("granting a lease", func() (err error) {
		r, err = s.b.client.Grant(s.ctx, seconds(s.b.options.Lease))
		return err
	})
	if !ok {
		return 0, false
	}
	alive, err := s.b.client.KeepAlive(s.ctx, r.ID)
	return r.ID, s.post(func() {
		s.lease, s.alive = r.ID, alive
		if err != nil { // the client has been closed
			s.end(err)
		}
	})
}

// ask finds out what has become of a lease that was not renewed in time. Only the store knows: one that was away for
// longer comes back with the leases that it had, and nobody was lost.
func (s *session) ask(lease clientv3.LeaseID) {
	var r *clientv3.LeaseTimeToLiveResponse
	ok := s.retry("asking for the agent's lease", func() (err error) {
		r, err = s.b.client.TimeToLive(s.ctx, lease)
		return err
	})
	if !ok {
		return
	}
	if r.TTL <= 0 {
		s.post(func() { s.end(errLost) })
		return
	}
	alive, err := s.b.client.KeepAlive(s.ctx, lease)
	s.post(func() {
		if s.alive = alive; err != nil { // the client has been closed
			s.end(err)
		}
	})
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// join grants a lease and creates the agent's key, in two requests. The second makes it the leader where there is none.
func (s *session) join(lease clientv3.LeaseID, e entry) {
	ok := lease != 0
	if !ok {
		if lease, ok = s.grant(); !ok {
			return
		}
	}
	k, me := s.b.keys, s.b.keys.agent(s.b.agent.ID)
	lead := clientv3.OpTxn([]clientv3.Cmp{absent(k.leader)},
		[]clientv3.Op{clientv3.OpPut(k.leader, s.b.agent.ID, clientv3.WithLease(lease))}, nil)
	r, ok := s.own("joining", []clientv3.Cmp{absent(me)},
		[]clientv3.Op{
			clientv3.OpPut(me, encode(e), clientv3.WithLease(lease)), lead,
			clientv3.OpGet(k.head, clientv3.WithPrefix()),
		},
		clientv3.OpGet(me), clientv3.OpGet(k.head, clientv3.WithPrefix()))
	if !ok {
		return
	}
	rev := r.Header.Revision
	ev, written := evJoined{created: rev}, rev
	if r.Succeeded {
		s.b.counters.writes.Add(1)
	} else if kv := r.Responses[0].GetResponseRange().Kvs[0]; clientv3.LeaseID(kv.Lease) == lease {
		ev.created, written = kv.CreateRevision, kv.ModRevision // by an earlier try
	} else {
		s.report(evTaken{rev})
		return
	}
	h := s.readHead(r.Responses[len(r.Responses)-1].GetResponseRange().Kvs)
	ev.world, ev.worldRev = h.world, h.worldRev
	if ev.leader = h.leader; h.leaderLease == lease {
		ev.leads = h.leader
		s.b.counters.writes.Add(1)
	}
	s.post(func() {
		s.runLease, s.written = h.runLease, written
		s.step(ev)
		s.watchHead(rev)
	})
}

// commit runs a transaction until it succeeds, and gives up if its lease no longer exists.
func (s *session) commit(what string, if_ []clientv3.Cmp, then []clientv3.Op,
	else_ ...clientv3.Op,
) (*clientv3.TxnResponse, bool) {
	var r *clientv3.TxnResponse
	ok := s.retry(what, func() (err error) {
		r, err = s.b.client.Txn(s.ctx).If(if_...).Then(then...).Else(else_...).Commit()
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			r, err = nil, nil
		}
		return err
	})
	return r, ok && r != nil
}

// own is commit for keys on the agent's own lease. Without that lease the session ends.
func (s *session) own(what string, if_ []clientv3.Cmp, then []clientv3.Op, else_ ...clientv3.Op) (*clientv3.TxnResponse,
	bool,
) {
	r, ok := s.commit(what, if_, then, else_...)
	if !ok {
		s.post(func() { s.end(errLost) })
	}
	return r, ok
}

// head is the content of the keys that all agents watch.
type head struct {
	leader, worldRev      int64
	world                 *doc
	leaderLease, runLease clientv3.LeaseID
}

func (s *session) readHead(kvs []*mvccpb.KeyValue) head {
	var h head
	for _, kv := range kvs {
		switch string(kv.Key) {
		case s.b.keys.leader:
			h.leader, h.leaderLease = kv.CreateRevision, clientv3.LeaseID(kv.Lease)
		case s.b.keys.world:
			h.world, h.worldRev, h.runLease = decode[doc](kv.Value), kv.ModRevision, clientv3.LeaseID(kv.Lease)
		}
	}
	return h
}

// campaign makes the agent the leader if there is none.
func (s *session) campaign(lease clientv3.LeaseID, mine int64) {
	k := s.b.keys
	r, ok := s.own("campaigning", []clientv3.Cmp{absent(k.leader), created(k.agent(s.b.agent.ID), mine)},
		[]clientv3.Op{clientv3.OpPut(k.leader, s.b.agent.ID, clientv3.WithLease(lease))}, clientv3.OpGet(k.leader))
	if !ok {
		return
	}
	ev := evElected{}
	if r.Succeeded {
		s.b.counters.writes.Add(1)
		ev.leads = r.Header.Revision
	} else if h := s.readHead(r.Responses[0].GetResponseRange().Kvs); h.leaderLease == lease {
		ev.leads = h.leader
	}
	s.report(ev)
}

// update writes the agent's key, after earlier updates.
func (s *session) update(a actUpdate) {
	if s.updates = append(s.updates, a); len(s.updates) == 1 {
		go s.put(a, s.lease, s.runLease, s.written)
	}
}

// put compares the last revision of the key, so that a late attempt does not undo a later update.
func (s *session) put(a actUpdate, lease, run clientv3.LeaseID, written int64) {
	me := s.b.keys.agent(s.b.agent.ID)
	ops := []clientv3.Op{clientv3.OpPut(me, encode(a.entry), clientv3.WithLease(lease))}
	if a.mark != nil {
		ops = append(ops, clientv3.OpPut(s.b.keys.place(a.dir, s.b.agent.ID), encode(a.mark), clientv3.WithLease(run)))
	}
	r, ok := s.own("updating the agent", []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(me), "=", written)}, ops,
		clientv3.OpGet(me))
	if !ok {
		return
	}
	written = r.Header.Revision
	if !r.Succeeded {
		kvs := r.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 || clientv3.LeaseID(kvs[0].Lease) != lease || string(kvs[0].Value) != encode(a.entry) {
			s.post(func() { s.end(errLost) })
			return
		}
		written = kvs[0].ModRevision // by an earlier try
	}
	s.post(func() {
		s.written = written
		s.b.counters.writes.Add(int64(len(ops)))
		if s.updates = s.updates[1:]; len(s.updates) > 0 {
			go s.put(s.updates[0], s.lease, s.runLease, s.written)
		}
	})
}

// fetch reads the agent's assignment at the revision of head/world: the member of the store's cluster that has reported
// that revision can answer alone. After any error it reads the latest one.
func (s *session) fetch(a actFetch) {
	key := s.b.keys.place(a.dir, s.b.agent.ID)
	s.b.counters.requests.Add(1)
	r, err := s.b.client.Get(s.ctx, key, clientv3.WithRev(a.rev), clientv3.WithSerializable())
	if err != nil {
		ok := s.retry("reading the assignment", func() (err error) {
			r, err = s.b.client.Get(s.ctx, key)
			return err
		})
		if !ok {
			return
		}
	}
	ev, run := evAssigned{dir: a.dir}, clientv3.LeaseID(0)
	if len(r.Kvs) > 0 {
		ev.mine, run = decode[assignment](r.Kvs[0].Value), clientv3.LeaseID(r.Kvs[0].Lease)
	}
	s.post(func() {
		if run != 0 {
			s.runLease = run
		}
		s.step(ev)
	})
}

// load reads all that a leader decides by, at one revision, and then watches the agents, unless that is out of date.
func (s *session) load(after time.Duration) {
	select {
	case <-time.After(after):
	case <-s.ctx.Done():
		return
	}
	k := s.b.keys
	r, ok := s.commit("reading the agents", nil, []clientv3.Op{
		clientv3.OpGet(k.head, clientv3.WithPrefix()), clientv3.OpGet(k.agents, clientv3.WithPrefix()),
		clientv3.OpGet(k.worlds, clientv3.WithPrefix()),
	})
	if !ok {
		return
	}
	kvs := func(i int) []*mvccpb.KeyValue { return r.Responses[i].GetResponseRange().Kvs }
	h := s.readHead(kvs(0))
	ev := evLoaded{
		agents: map[string]agent{}, members: map[string]assignment{},
		world: h.world, worldRev: h.worldRev, leader: h.leader, rev: r.Header.Revision,
	}
	for _, kv := range kvs(1) {
		ev.agents[name(kv.Key, k.agents)] = agent{kv.CreateRevision, *decode[entry](kv.Value)}
	}
	for _, kv := range kvs(2) {
		if h.world != nil && strings.HasPrefix(string(kv.Key), k.dir(h.world.Dir)) {
			ev.members[name(kv.Key, k.dir(h.world.Dir))] = *decode[assignment](kv.Value)
		}
	}
	s.post(func() {
		if ev.rev >= s.machine.worldSeen {
			s.runLease = h.runLease
		}
		s.refresh.Reset(0)
		s.step(ev)
		if lead := s.machine.lead; lead != nil && lead.loaded {
			s.watchAgents(ev.rev)
		}
	})
}

// name returns the id of the agent with this key.
func name(key []byte, prefix string) string {
	id, err := url.PathUnescape(strings.TrimPrefix(string(key), prefix))
	if err != nil {
		return string(key)
	}
	return id
}

// write writes the assignments, if any, and then the run's state, all on the run's lease. Assignments of earlier
// versions go in the last transaction.
func (s *session) write(a actWrite, lease, run clientv3.LeaseID) {
	if run == 0 {
		var r *clientv3.LeaseGrantResponse
		if !s.retry("granting the run's lease", func() (err error) {
			r, err = s.b.client.Grant(s.ctx, seconds(s.b.options.TTL))
			return err
		}) {
			return
		}
		run = r.ID
		s.post(func() { s.runLease = run })
	}
	s.report(s.writeAll(a, run))
}

func (s *session) writeAll(a actWrite, run clientv3.LeaseID) evWritten {
	k := s.b.keys
	fence := []clientv3.Cmp{
		created(k.leader, a.leads),
		clientv3.Compare(clientv3.ModRevision(k.world), "=", a.worldRev),
	}
	ops := make([]clientv3.Op, 0, len(a.places))
	for id, place := range a.places {
		ops = append(ops, clientv3.OpPut(k.place(a.doc.Dir, id), encode(place), clientv3.WithLease(run)))
	}
	if !s.writeBatches(fence, ops) {
		return evWritten{}
	}
	ops = []clientv3.Op{clientv3.OpPut(k.world, encode(a.doc), clientv3.WithLease(run))}
	switch a.doc.State {
	case final: // all directories but this one: its end is the first key that no key in it comes after
		dir := k.dir(a.doc.Dir)
		ops = append(ops, clientv3.OpDelete(k.worlds, clientv3.WithRange(dir)),
			clientv3.OpDelete(clientv3.GetPrefixRangeEnd(dir),
				clientv3.WithRange(clientv3.GetPrefixRangeEnd(k.worlds))))
	case succeeded, failed:
		ops = append(ops, clientv3.OpDelete(k.worlds, clientv3.WithPrefix()))
	}
	r, ok := s.commit("writing the run's state", fence, ops, clientv3.OpGet(k.world))
	if !ok {
		return evWritten{}
	}
	if r.Succeeded {
		s.b.counters.writes.Add(1)
		return evWritten{ok: true, rev: r.Header.Revision}
	}
	// An earlier try may have gone through: no other agent writes this at the next revision of the key.
	h := s.readHead(r.Responses[0].GetResponseRange().Kvs)
	return evWritten{ok: h.world != nil && a.doc.State == final && *h.world == a.doc, rev: h.worldRev}
}

// writeBatches writes assignments, several transactions at a time: they do not wait for each other.
func (s *session) writeBatches(fence []clientv3.Cmp, ops []clientv3.Op) bool {
	const inFlight = 4
	var g sync.WaitGroup
	var refused atomic.Bool
	free := make(chan struct{}, inFlight)
	for part := range slices.Chunk(ops, batch) {
		free <- struct{}{}
		g.Go(func() {
			defer func() { <-free }()
			r, ok := s.commit("writing assignments", fence, part)
			if !ok || !r.Succeeded {
				refused.Store(true)
				return
			}
			s.b.counters.writes.Add(int64(len(part)))
		})
	}
	g.Wait()
	return !refused.Load()
}

// keepRun refreshes the run's lease, while this agent leads.
func (s *session) keepRun() {
	s.refresh.Reset(s.b.options.TTL / 3)
	if id := s.runLease; id != 0 {
		go func() {
			s.b.counters.keepAlives.Add(1)
			if _, err := s.b.client.KeepAliveOnce(s.ctx, id); err != nil && s.ctx.Err() == nil {
				s.b.options.Log.Warn("keeping the run alive", "run", s.b.settings.RunID, "err", err)
			}
		}()
	}
}
