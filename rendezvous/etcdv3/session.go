package etcdv3

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
)

// errLost says that the agent's lease has ended: to the others it is gone.
var errLost = errors.New("the agent's lease has ended")

type result struct {
	world rendezvous.World
	over  bool // the session has ended with this
	err   error
}

type request struct {
	ev     event
	answer chan result
}

// session is an agent from its join to its end, between which it holds one lease. One goroutine drives its machine.
type session struct {
	b      *Backend
	ctx    context.Context // the session's
	cancel context.CancelFunc
	calls  chan request
	inbox  chan func()   // results of requests and timers
	ended  chan struct{} // closed when the goroutine has ended, after which the fields below may be read by others
	state  state         // of the run, if that is over
	err    error

	machine *machine
	lease   clientv3.LeaseID
	alive   <-chan *clientv3.LeaseKeepAliveResponse
	waiting *request      // a call that is not answered
	changed chan struct{} // of the world at work

	head, agents, pred watch
	watched            string // the agent that pred is about
	links              map[neighbour]*link
	updates            []actUpdate // the first is being written: they keep their order
	runLease           clientv3.LeaseID
	written            int64       // mod revision of the agent's key
	refresh            *time.Timer // of the run's lease, while leading
	timers             [timers]*time.Timer
}

// watch is a watch that can be stopped.
type watch struct {
	clientv3.WatchChan
	cancel context.CancelFunc
}

func (w *watch) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	*w = watch{}
}

func (b *Backend) start() *session {
	ctx, cancel := context.WithCancel(context.Background())
	o, a := b.options, b.agent
	s := &session{
		b: b, ctx: ctx, cancel: cancel, calls: make(chan request), inbox: make(chan func()), ended: make(chan struct{}),
		refresh: time.NewTimer(time.Hour),
	}
	s.machine = newMachine(a.ID, rules{b.settings.Min, b.settings.Max, b.settings.LastCall, o.Pause, o.Grace},
		entry{Host: a.Host, Role: a.Role, Workers: a.Workers, Listen: s.listen()})
	s.refresh.Stop()
	go s.run()
	return s
}

// stop ends the session without a request to the store.
func (s *session) stop() {
	s.cancel()
	<-s.ended
}

// revoke deletes all keys on the lease of a session that has ended.
func (s *session) revoke(ctx context.Context) error {
	if s.lease == 0 {
		return nil
	}
	s.b.counters.requests.Add(1)
	_, err := s.b.client.Revoke(ctx, s.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) { // a neighbour was faster
		return nil
	}
	return err
}

func (s *session) run() {
	defer close(s.ended)
	defer s.close()
	for s.ctx.Err() == nil {
		select {
		case <-s.ctx.Done():
		case c := <-s.calls:
			s.waiting = &c
			s.step(c.ev)
		case f := <-s.inbox:
			f()
		case r, ok := <-s.head.WatchChan:
			s.headChanged(r, ok)
		case r, ok := <-s.agents.WatchChan:
			s.agentsChanged(r, ok)
		case r, ok := <-s.pred.WatchChan:
			s.predChanged(r, ok)
		case _, ok := <-s.alive:
			s.b.counters.keepAlives.Add(1)
			if !ok {
				s.alive = nil
				go s.ask(s.lease)
			}
		case <-s.refresh.C:
			s.keepRun()
		}
	}
}

// end makes run return.
func (s *session) end(err error) {
	s.err = err
	s.cancel()
}

func (s *session) close() {
	if s.err == nil && s.state == "" {
		s.err = errLost
	}
	if s.state.over() { // no agent waits for this
		ctx, cancel := context.WithTimeout(context.Background(), s.b.options.Lease)
		if err := s.revoke(ctx); err != nil {
			s.b.options.Log.Debug("leaving a run that is over", "run", s.b.settings.RunID, "agent", s.b.agent.ID, "err",
				err)
		}
		cancel()
	}
	s.drop()
	s.head.stop()
	s.agents.stop()
	s.pred.stop()
	s.refresh.Stop()
	for _, t := range s.timers {
		if t != nil {
			t.Stop()
		}
	}
	if s.waiting != nil {
		s.waiting.answer <- s.verdict(s.waiting.ev)
	}
}

// verdict answers a call in a session that has ended.
func (s *session) verdict(ev event) result {
	switch ev.(type) {
	case evJoin:
		if s.state.over() {
			return result{err: rendezvous.ErrClosed}
		}
	default:
		switch s.state {
		case succeeded:
			return result{over: true}
		case failed:
			return result{err: rendezvous.ErrClosed} // for Fail as well as for Finish
		}
	}
	return result{err: s.err}
}

// drop closes Changed of the world at work.
func (s *session) drop() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// post runs a function in the session's goroutine. It returns false if that has ended.
func (s *session) post(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// report hands an event to the machine.
func (s *session) report(ev event) { s.post(func() { s.step(ev) }) }

func (s *session) step(ev event) {
	for _, a := range s.machine.Step(ev) {
		s.perform(a)
	}
}

func (s *session) perform(a action) {
	switch a := a.(type) {
	case actJoin:
		go s.join(s.lease, a.entry)
	case actCampaign:
		go s.campaign(s.lease, s.machine.created)
	case actUpdate:
		s.update(a)
	case actFetch:
		go s.fetch(a)
	case actWatch:
		s.watchAgent(a.id, a.rev)
	case actUnwatch:
		s.pred.stop()
	case actNeighbours:
		if !s.b.options.Apart {
			s.watchNeighbours(a.all)
		}
	case actLoad:
		s.agents.stop()
		go s.load(a.after)
	case actWrite:
		go s.write(a, s.lease, s.runLease)
	case actStepDown:
		s.agents.stop()
		s.refresh.Stop()
	case actTimer:
		s.setTimer(a)
	case actWorld:
		s.deliver(a)
	case actChanged:
		s.drop()
	case actEnd:
		s.state = a.state
		s.end(nil)
	}
}

func (s *session) setTimer(a actTimer) {
	if t := s.timers[a.kind]; t != nil {
		t.Stop()
	}
	s.timers[a.kind] = time.AfterFunc(a.after, func() { s.report(evTimer{a.kind, a.seq}) })
}

// deliver answers Join.
func (s *session) deliver(a actWorld) {
	s.changed = make(chan struct{})
	w := rendezvous.World{
		Version: a.doc.Version, Rank: a.mine.Rank, Size: a.doc.Size, Base: a.mine.Base, Total: a.doc.Total,
		RoleBase: a.mine.RoleBase, RoleTotal: a.mine.RoleTotal, MasterAddr: a.doc.Addr, MasterPort: a.doc.Port,
		Changed: s.changed,
	}
	c := s.waiting
	s.waiting = nil
	c.answer <- result{world: w}
}
