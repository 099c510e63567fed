package etcdv3

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The client resumes a watch by itself when a connection breaks. A watch that ends nevertheless, because its next
// events have been compacted away, is followed by a read.

// open begins a watch in place of w. The client returns only once the store has answered, which may take long while
// that is away: the session does not wait for it, as it has to notice the end of its lease.
func (s *session) open(w *watch, key string, rev int64, opts ...clientv3.OpOption) {
	w.stop()
	s.b.counters.requests.Add(1)
	ctx, cancel := context.WithCancel(s.ctx)
	w.cancel = cancel
	go func() {
		ch := s.b.client.Watch(ctx, key, append(opts, clientv3.WithRev(rev+1))...)
		s.post(func() {
			if ctx.Err() == nil {
				w.WatchChan = ch
			}
		})
	}()
}

// broken says whether a watch has ended.
func broken(r clientv3.WatchResponse, ok bool) bool { return !ok || r.Err() != nil }

func (s *session) watchHead(rev int64) { s.open(&s.head, s.b.keys.head, rev, clientv3.WithPrefix()) }

func (s *session) headChanged(r clientv3.WatchResponse, ok bool) {
	if broken(r, ok) {
		s.head.stop()
		go s.rereadHead()
		return
	}
	s.b.counters.events.Add(1)
	for _, e := range r.Events {
		rev := e.Kv.ModRevision
		switch string(e.Kv.Key) {
		case s.b.keys.leader:
			ev := evLeader{rev: rev}
			if e.Type == mvccpb.PUT {
				ev.created = e.Kv.CreateRevision
			}
			s.step(ev)
		case s.b.keys.world:
			ev := evWorld{rev: rev}
			s.runLease = 0
			if e.Type == mvccpb.PUT {
				ev.doc, s.runLease = decode[doc](e.Kv.Value), clientv3.LeaseID(e.Kv.Lease)
			}
			s.step(ev)
		}
	}
}

func (s *session) rereadHead() {
	var r *clientv3.GetResponse
	if !s.retry("reading the run's state", func() (err error) {
		r, err = s.b.client.Get(s.ctx, s.b.keys.head, clientv3.WithPrefix())
		return err
	}) {
		return
	}
	h, rev := s.readHead(r.Kvs), r.Header.Revision
	s.post(func() {
		s.runLease = h.runLease
		world := evWorld{h.world, h.worldRev}
		if h.world == nil {
			world.rev = rev
		}
		leader := evLeader{h.leader, h.leader}
		if h.leader == 0 {
			leader.rev = rev
		}
		s.step(world)
		s.step(leader)
		s.watchHead(rev)
	})
}

func (s *session) watchAgents(rev int64) {
	s.open(&s.agents, s.b.keys.agents, rev, clientv3.WithPrefix())
}

func (s *session) agentsChanged(r clientv3.WatchResponse, ok bool) {
	if broken(r, ok) {
		s.agents.stop()
		s.step(evReload{})
		return
	}
	s.b.counters.events.Add(1)
	for _, e := range r.Events {
		ev := evAgent{id: name(e.Kv.Key, s.b.keys.agents), rev: e.Kv.ModRevision}
		if e.Type == mvccpb.PUT {
			ev.created, ev.entry = e.Kv.CreateRevision, decode[entry](e.Kv.Value)
		}
		s.step(ev)
	}
}

// watchAgent watches one other agent's key, from a revision at which it existed. It may be deleted since.
func (s *session) watchAgent(id string, rev int64) {
	s.watched = id
	s.open(&s.pred, s.b.keys.agent(id), rev, clientv3.WithFilterPut())
}

func (s *session) predChanged(r clientv3.WatchResponse, ok bool) {
	if broken(r, ok) {
		s.pred.stop()
		go s.reread(s.watched)
		return
	}
	s.b.counters.events.Add(1)
	if len(r.Events) > 0 {
		s.step(evGone{s.watched})
	}
}

func (s *session) reread(id string) {
	var r *clientv3.GetResponse
	if !s.retry("reading the watched agent", func() (err error) {
		r, err = s.b.client.Get(s.ctx, s.b.keys.agent(id), clientv3.WithCountOnly())
		return err
	}) {
		return
	}
	s.post(func() {
		switch {
		case s.watched != id || s.pred.cancel != nil:
		case r.Count == 0:
			s.step(evGone{id})
		default:
			s.watchAgent(id, r.Header.Revision)
		}
	})
}
