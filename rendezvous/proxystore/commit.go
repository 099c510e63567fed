package proxystore

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// session is what the etcd says of this engine's writes.
type session struct {
	seq int64 // of the request that is being carried out
	rev int64 // mod revision of the key; 0 before the first write
}

// record is what a session's key holds.
func record(seq, number int64) string { return fmt.Sprintf("%d %d", seq, number) }

func parseRecord(text []byte) (seq, number int64) {
	if _, err := fmt.Sscanf(string(text), "%d %d", &seq, &number); err != nil {
		return 0, 0 // nobody of ours has written it
	}
	return seq, number
}

// write carries out a request that may change a key.
func (e *Engine) write(o *operation) error {
	key := o.q.Keys[0]
	c, rev, now, err := e.commit(o.q, key)
	if err != nil {
		return err
	}
	reply := c.reply
	if c.write {
		reply = written(o.q, c.number)
	}
	if o.q.Op == tcpstore.Barrier && reply == nil {
		e.wait(o, []string{key}, rev, now)
		return nil
	}
	e.answer(o, reply)
	return nil
}

// commit makes a request's change to a key exactly once, and returns it with the revision and the era in which it was
// made. What is answered without a change was true at a moment after the request came.
func (e *Engine) commit(q tcpstore.Request, key string) (c change, rev int64, in *era, err error) {
	in = e.renew()
	e.session.seq++
	now, current, uncertain := e.seen.values[key], false, false
	for {
		if e.ctx.Err() == nil && in.Err() != nil { // whatever was done in it may be gone
			in = e.renew()
			now, current, uncertain = value{}, false, true
		}
		if c, err = plan(q, now); err == nil && len(c.data) > mostValue {
			err = refuse("length", "%s to a value of %d bytes: an etcd takes %d", q.Op, len(c.data), mostValue)
		}
		switch {
		case err == nil && c.write:
		case !current:
			if now, err = e.fetchOne(key); err != nil {
				return c, 0, in, err
			}
			current = true
			continue
		case uncertain: // an earlier try may still be on its way, and must not come after the answer
			held, number, rev, fenceErr := e.fence()
			if held {
				e.seen.put(key, writtenBy(q, rev))
				return change{write: true, number: number}, rev, in, nil
			}
			return c, 0, in, errors.Join(err, fenceErr)
		default:
			return c, 0, in, err
		}
		r, unsure, err := e.transact(e.condition(q, key, now), e.operations(key, c), key)
		if err != nil {
			return c, 0, in, err
		}
		if in.Err() != nil && e.ctx.Err() == nil {
			continue
		}
		uncertain = uncertain || unsure
		if r.Succeeded {
			e.session.rev = r.Header.Revision
			v := value{data: c.data, quiet: c.quiet, rev: r.Header.Revision}
			if c.remove {
				v.rev = 0
			}
			e.seen.put(key, v)
			return c, r.Header.Revision, in, nil
		}
		kv := r.Responses[0].GetResponseRange().Kvs
		now, current = fromKVs(kv), true
		e.seen.put(key, now)
		if seq, number, rev := e.readSession(r.Responses[1]); seq == e.session.seq {
			return change{write: true, number: number}, rev, in, nil
		}
	}
}

// readSession takes over the session's revision.
func (e *Engine) readSession(r responseOp) (seq, number, rev int64) {
	kvs := r.GetResponseRange().Kvs
	e.session.rev = 0
	if len(kvs) > 0 {
		e.session.rev = kvs[0].ModRevision
		seq, number = parseRecord(kvs[0].Value)
	}
	return seq, number, e.session.rev
}

func fromKVs(kvs []*mvccpb.KeyValue) value {
	if len(kvs) == 0 {
		return value{}
	}
	return decode(kvs[0].Value, kvs[0].ModRevision)
}

// condition is that nothing has changed since: of the key only where the change depends on it.
func (e *Engine) condition(q tcpstore.Request, key string, now value) []clientv3.Cmp {
	all := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(e.keys.session), "=", e.session.rev)}
	if q.Op != tcpstore.Set {
		all = append(all, clientv3.Compare(clientv3.ModRevision(e.keys.values+key), "=", now.rev))
	}
	return all
}

// operations make a change, and note it. They need a lease, which the transaction gives them.
func (e *Engine) operations(key string, c change) func(clientv3.LeaseID) []clientv3.Op {
	return func(lease clientv3.LeaseID) []clientv3.Op {
		op := clientv3.OpPut(e.keys.values+key, encode(c.data, c.quiet), clientv3.WithLease(lease))
		if c.remove {
			op = clientv3.OpDelete(e.keys.values + key)
		}
		return []clientv3.Op{op, e.noteOp(lease, c.number)}
	}
}

func (e *Engine) noteOp(lease clientv3.LeaseID, number int64) clientv3.Op {
	return clientv3.OpPut(e.keys.session, record(e.session.seq, number), clientv3.WithLease(lease))
}

// fence changes the session, so that no earlier transaction of this request can hold any more. Where one of them did,
// it returns what that noted and when.
func (e *Engine) fence() (held bool, number, rev int64, err error) {
	request := e.session.seq
	e.session.seq++ // so that what it notes is not taken for the request's
	return e.writeNoted(request, func(clientv3.LeaseID) []clientv3.Op { return nil })
}

// writeNoted commits operations with a note of the session, once. Where an earlier request has held instead, it returns
// what that noted and when.
func (e *Engine) writeNoted(
	earlier int64, ops func(clientv3.LeaseID) []clientv3.Op,
) (held bool, number, rev int64, err error) {
	for {
		r, _, err := e.transact(
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(e.keys.session), "=", e.session.rev)},
			func(lease clientv3.LeaseID) []clientv3.Op { return append(ops(lease), e.noteOp(lease, 0)) })
		if err != nil {
			return false, 0, 0, err
		}
		if r.Succeeded {
			e.session.rev = r.Header.Revision
			return false, 0, e.session.rev, nil
		}
		switch seq, number, rev := e.readSession(r.Responses[0]); seq {
		case e.session.seq:
			return false, 0, rev, nil
		case earlier:
			return true, number, rev, nil
		}
	}
}

// setAll is MULTI_SET: as many pairs at a time as a transaction takes, in their order.
func (e *Engine) setAll(o *operation) error {
	q := o.q
	for begin := 0; begin < len(q.Keys); {
		end, bytes := begin, 0
		last := map[string]int{} // a transaction writes no key twice
		for ; end < len(q.Keys) && len(last) < mostOps; end++ {
			if bytes += len(q.Keys[end]) + len(q.Values[end]); bytes > mostValue && end > begin {
				break
			}
			last[q.Keys[end]] = end
		}
		if err := e.setSome(q, last); err != nil {
			return err
		}
		begin = end
	}
	e.answer(o, nil)
	return nil
}

func (e *Engine) setSome(q tcpstore.Request, pairs map[string]int) error {
	e.session.seq++
	for {
		now := e.renew()
		_, _, rev, err := e.writeNoted(-1, func(lease clientv3.LeaseID) (ops []clientv3.Op) {
			for key, i := range pairs {
				ops = append(ops, clientv3.OpPut(e.keys.values+key, encode(q.Values[i], false),
					clientv3.WithLease(lease)))
			}
			return ops
		})
		if err != nil {
			return err
		}
		if now.Err() == nil || e.ctx.Err() != nil {
			for key, i := range pairs {
				e.seen.put(key, value{data: q.Values[i], rev: rev})
			}
			return nil
		}
	}
}
