package etcdv3

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	mostWitnesses = 8  // dialled at a time
	mostListed    = 32 // agents read of the store for them at a time
	// witnessLimit is for all that is asked beside a dial, from its start: less than the second after which the kernel
	// repeats a SYN. So an answer comes before the neighbour's second SYN leaves, and shows that this machine's network
	// worked by then. A later one could be that of a network that has just come back, which both SYN have missed.
	witnessLimit = 900 * time.Millisecond
)

// target is where an agent listens, and what it says there.
type target struct{ addr, greeting string }

// elsewhere says whether an agent listens, and on another machine than these.
func (e *entry) elsewhere(hosts ...string) bool {
	for _, h := range hosts {
		if e.Host == h {
			return false
		}
	}
	return e.Listen != 0
}

// witness finds out, beside a dial of a neighbour, whether this agent reaches anybody else: if not, the neighbour's
// silence shows as little about the neighbour as about this machine. It is true also where there is nobody else whom to
// ask, but not where the store is too slow to say so.
func (s *session) witness(ctx context.Context, n neighbour) bool {
	all, err := s.witnesses(ctx, n)
	return err == nil && ctx.Err() == nil && (len(all) == 0 || anyAnswers(ctx, all))
}

// witnesses are the agent's other neighbours, where they were reached, and some other agents of the run, of other
// machines than its own and the silent one. Both kinds are needed: the address of a neighbour needs no name server,
// which may have been lost with the silent machine, and all neighbours may be silent at once, as with a rack.
func (s *session) witnesses(ctx context.Context, n neighbour) ([]target, error) {
	host, _, err := net.SplitHostPort(n.Addr)
	if err != nil {
		return nil, err
	}
	listed, err := s.list(ctx, host, s.b.agent.Host)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
	var all []target
	for id, addr := range s.reachedNeighbours(ctx, host) {
		all = append(all, target{addr, greeting(s.b.keys.agent(id))})
	}
	for _, a := range listed {
		if len(all) < mostWitnesses {
			all = append(all, target{a.address(), greeting(a.key)})
		}
	}
	return all, nil
}

// reachedNeighbours are the addresses of neighbours on other machines than this one and another.
func (s *session) reachedNeighbours(ctx context.Context, but string) map[string]string {
	got := make(chan map[string]string, 1)
	if !s.post(func() {
		all := map[string]string{}
		for n, l := range s.links {
			if host, _, err := net.SplitHostPort(n.Addr); err == nil && l.reached.Load() && host != but &&
				host != s.b.agent.Host {
				all[n.ID] = l.addr
			}
		}
		got <- all
	}) {
		return nil
	}
	select {
	case all := <-got:
		return all
	case <-ctx.Done():
		return nil
	}
}

// listed is an agent as the store has it.
type listed struct {
	entry
	key string
}

// list reads agents on other machines than these: those that come after this one by name, and then the first ones.
// Where a few machines have many agents it reads on until there is one, since only a run that has none at all leaves
// this agent nobody to ask.
func (s *session) list(ctx context.Context, hosts ...string) ([]listed, error) {
	k := s.b.keys
	me, end := k.agent(s.b.agent.ID), clientv3.GetPrefixRangeEnd(k.agents)
	from := []string{me + "\x00", k.agents}
	var all []listed
	for more := true; more && len(all) == 0; {
		s.b.counters.requests.Add(1)
		r, err := s.b.client.Txn(ctx).Then(
			clientv3.OpGet(from[0], clientv3.WithRange(end), clientv3.WithLimit(mostListed)),
			clientv3.OpGet(from[1], clientv3.WithRange(me), clientv3.WithLimit(mostListed)),
		).Commit()
		if err != nil {
			return nil, err
		}
		more = false
		for i, part := range r.Responses {
			for _, kv := range part.GetResponseRange().Kvs {
				from[i] = string(kv.Key) + "\x00"
				if e := decode[entry](kv.Value); len(all) < mostListed && e.elsewhere(hosts...) {
					all = append(all, listed{*e, string(kv.Key)})
				}
			}
			more = more || part.GetResponseRange().More
		}
	}
	return all, nil
}

// anyAnswers says whether one of these answers as the agent that it should be: what accepts in an agent's place, as a
// mesh does on this very machine, is no witness.
func anyAnswers(ctx context.Context, all []target) bool {
	answers := make(chan bool, len(all))
	for _, t := range all {
		go func() { answers <- t.answers(ctx) }()
	}
	for range all {
		if <-answers {
			return true
		}
	}
	return false
}

func (t target) answers(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.addr)
	if err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	text := make([]byte, len(t.greeting))
	_, err = io.ReadFull(conn, text)
	return err == nil && string(text) == t.greeting
}
