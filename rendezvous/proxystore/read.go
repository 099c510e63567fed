package proxystore

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// fetchOne reads a key, of which the etcd sends nothing where it is as it was seen.
func (e *Engine) fetchOne(key string) (value, error) {
	for {
		now := e.renew()
		values, _, err := e.fetch(e.ctx, []string{key}, e.seen.values, math.MaxInt)
		if err == nil && now.Err() != nil && e.ctx.Err() == nil {
			continue
		}
		e.learn([]string{key}, values)
		return values[key], err
	}
}

// fetch reads keys, all at one revision, which it returns. Of those that are as they were seen nothing is sent. Values
// that take more bytes, as often as they are asked for, are refused before all of them are here.
func (e *Engine) fetch(
	ctx context.Context, keys []string, guesses map[string]value, most int,
) (values map[string]value, rev int64, err error) {
	times := map[string]int{} // a client may name one twice, and a gate reads it once
	for _, key := range keys {
		times[key]++
	}
	keys = slices.Sorted(maps.Keys(times))
	if len(keys) == 1 {
		values, rev, err = e.fetchChanged(ctx, keys[0], guesses[keys[0]])
		if err == nil && times[keys[0]]*len(values[keys[0]].data) > most {
			err = tooLong(most)
		}
		return values, rev, err
	}
	for {
		values, rev, err = map[string]value{}, 0, nil
		sum := 0
		for rest, atOnce := keys, mostOps; len(rest) > 0 && err == nil; {
			n, bytes := 0, 0
			for ; n < len(rest) && n < atOnce; n++ {
				if bytes += len(rest[n]); bytes > mostValue && n > 0 {
					break
				}
			}
			now, failed := e.fetchAt(ctx, rest[:n], rev, values)
			if limited(failed) && n > 1 { // a gate does not send the values of so many at once
				atOnce = n / 2
				continue
			}
			for _, key := range rest[:n] {
				sum += times[key] * len(values[key].data)
			}
			if failed == nil && sum > most {
				failed = tooLong(most)
			}
			rev, err, rest = now, failed, rest[n:]
		}
		if !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, rpctypes.ErrFutureRev) {
			return values, rev, err
		}
	}
}

func tooLong(most int) error {
	return refuse("length", "an answer with values of more than %d bytes", most)
}

func (e *Engine) fetchChanged(
	ctx context.Context, key string, guess value,
) (values map[string]value, rev int64, err error) {
	var r *clientv3.TxnResponse
	err = e.try(ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
		var err error
		r, err = e.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(e.keys.values+key), "=", guess.rev)).
			Else(clientv3.OpGet(e.keys.values + key)).Commit()
		return (*pb.TxnResponse)(r).GetHeader(), err
	})
	if err != nil {
		return nil, 0, err
	}
	if !r.Succeeded {
		guess = fromKVs(r.Responses[0].GetResponseRange().Kvs)
	}
	return map[string]value{key: guess}, r.Header.Revision, nil
}

func (e *Engine) fetchAt(ctx context.Context, keys []string, rev int64, into map[string]value) (int64, error) {
	ops := make([]clientv3.Op, 0, len(keys))
	for _, key := range keys {
		ops = append(ops, clientv3.OpGet(e.keys.values+key, clientv3.WithRev(rev)))
	}
	var r *clientv3.TxnResponse
	err := e.try(ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
		var err error
		r, err = e.client.Txn(ctx).Then(ops...).Commit()
		return (*pb.TxnResponse)(r).GetHeader(), err
	})
	if err != nil {
		return 0, err
	}
	for i, key := range keys {
		into[key] = fromKVs(r.Responses[i].GetResponseRange().Kvs)
	}
	if rev == 0 {
		rev = r.Header.Revision
	}
	return rev, nil
}

// most is how long values may be in all that are answered; who asks whether keys are there gets none.
func (e *Engine) most(o *operation) int {
	if o.q.Op == tcpstore.MultiGet {
		return e.options.Answer
	}
	return math.MaxInt
}

func (e *Engine) learn(keys []string, values map[string]value) {
	for _, key := range keys {
		if v, ok := values[key]; ok {
			e.seen.put(key, v)
		}
	}
}

// read answers CHECK, GET, MULTI_GET and WAIT, or leaves the latter waiting.
func (e *Engine) read(o *operation) error {
	now := e.renew()
	ctx, known := o.ctx, o.q.Op == tcpstore.Wait && e.seen.all(o.q.Keys)
	if known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(o.ctx, e.options.Patience)
		defer cancel()
	}
	values, rev, err := e.fetch(ctx, o.q.Keys, e.seen.values, e.most(o))
	if err != nil {
		if known && ctx.Err() != nil && o.ctx.Err() == nil { // the etcd is away, and the client's time is limited
			e.answer(o, tcpstore.Status(0))
			return nil
		}
		return err
	}
	if now.Err() != nil && e.ctx.Err() == nil { // perhaps this very answer was of another etcd than the guesses
		return e.read(o)
	}
	e.learn(o.q.Keys, values)
	missing := absent(o.q.Keys, values)
	switch {
	case len(missing) == 0:
		e.answer(o, found(o.q, values))
	case o.q.Op == tcpstore.Check:
		e.answer(o, tcpstore.Status(1))
	default:
		e.wait(o, missing, rev, now)
	}
	return nil
}

func absent(keys []string, values map[string]value) (missing []string) {
	for _, key := range keys {
		if !values[key].there() {
			missing = append(missing, key)
		}
	}
	return missing
}

// found is the reply once all keys are there.
func found(q tcpstore.Request, values map[string]value) tcpstore.Reply {
	if q.Op != tcpstore.Get && q.Op != tcpstore.MultiGet {
		return tcpstore.Status(0)
	}
	out := tcpstore.Reply{}
	for _, key := range q.Keys {
		out = out.Value(values[key].data)
	}
	return out
}

// look answers what is about all keys.
func (e *Engine) look(o *operation) error {
	now := e.renew()
	count, keys, err := e.list(o.q.Op == tcpstore.ListKeys)
	if err != nil {
		return err
	}
	if now.Err() != nil && e.ctx.Err() == nil {
		return e.look(o)
	}
	reply := tcpstore.Number(count)
	for _, key := range keys {
		reply = reply.Value([]byte(e.keys.visible(key)))
	}
	e.answer(o, reply)
	return nil
}

// list counts the run's keys, and names them if it is asked to, so many at a time as a gate sends at once.
func (e *Engine) list(names bool) (count int64, keys [][]byte, err error) {
	first := e.keys.values
	options := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(first)), clientv3.WithCountOnly()}
	if names {
		options[1] = clientv3.WithKeysOnly()
	}
	var rev int64
	for from, most := first, int64(mostListed); ; {
		r, err := e.get(from, append(options, clientv3.WithLimit(most), clientv3.WithRev(rev))...)
		switch {
		case limited(err) && most > 1:
			most /= 2
			continue
		case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, rpctypes.ErrFutureRev):
			from, rev, keys = first, 0, nil
			continue
		case err != nil:
			return 0, nil, err
		}
		if rev == 0 {
			rev, count = r.Header.Revision, r.Count
		}
		for _, kv := range r.Kvs {
			keys = append(keys, kv.Key)
			from = string(kv.Key) + "\x00"
		}
		if !names || !r.More {
			return count, keys, nil
		}
	}
}

func (e *Engine) get(from string, options ...clientv3.OpOption) (r *clientv3.GetResponse, err error) {
	err = e.try(e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
		var err error
		r, err = e.client.Get(ctx, from, options...)
		return (*pb.RangeResponse)(r).GetHeader(), err
	})
	return r, err
}

// wait answers a request once each of the keys was written since a revision, that they are deleted again
// notwithstanding. It does not keep the requests behind it, and ends with the era.
func (e *Engine) wait(o *operation, missing []string, rev int64, now *era) {
	left := map[string]struct{}{}
	for _, key := range missing {
		left[key] = struct{}{}
	}
	e.done.Go(func() {
		stop := context.AfterFunc(now, func() {
			e.fail(o, refuse("lost", "%s of %q waits: %s", o.q.Op, o.q.Keys, lostText))
		})
		defer stop()
		for {
			values := map[string]value{}
			if !e.await(o, left, rev) {
				return
			}
			if o.q.Op == tcpstore.Get || o.q.Op == tcpstore.MultiGet {
				var err error
				if values, rev, err = e.fetch(o.ctx, o.q.Keys, nil, e.most(o)); err != nil {
					e.fail(o, err)
					return
				}
				for _, key := range absent(o.q.Keys, values) { // deleted since
					left[key] = struct{}{}
				}
			}
			if len(left) == 0 {
				e.answer(o, found(o.q, values))
				return
			}
		}
	})
}

// await follows the writes to keys until each has one; false where nobody waits any longer. Where no watch is to be had
// it looks from time to time.
func (e *Engine) await(o *operation, left map[string]struct{}, rev int64) bool {
	for pause := leastPause; ; {
		began := time.Now()
		e.follow(o.ctx, left, rev)
		if len(left) == 0 {
			return true
		}
		if o.ctx.Err() != nil {
			return false
		}
		// The watch has ended, perhaps because what it was to tell of has been compacted away, or it is refused.
		pause = unwatched(pause, time.Since(began))
		if !sleep(o.ctx, pause) {
			return false
		}
		values, now, err := e.fetch(o.ctx, slices.Sorted(maps.Keys(left)), nil, math.MaxInt)
		if err != nil {
			return false
		}
		rev = now
		for key, v := range values {
			if v.there() && !v.quiet {
				delete(left, key)
			}
		}
	}
}

// unwatched is how long to pause after a watch that has ended, and the pause before it: those that are refused end at
// once.
func unwatched(before, watched time.Duration) time.Duration {
	if watched > mostUnwatched {
		return leastPause
	}
	return min(2*before, mostUnwatched)
}

// follow takes keys out of left as they are written, until there are none or the watch ends. One watch is for all,
// since those that are waited for together stand together.
func (e *Engine) follow(ctx context.Context, left map[string]struct{}, rev int64) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	keys := slices.Sorted(maps.Keys(left))
	if len(keys) == 0 {
		return
	}
	last := e.keys.values + keys[len(keys)-1] + "\x00"
	for r := range e.client.Watch(ctx, e.keys.values+keys[0], clientv3.WithRange(last), clientv3.WithRev(rev+1)) {
		if r.Err() != nil {
			return
		}
		for _, ev := range r.Events {
			if ev.Type == mvccpb.PUT && !decode(ev.Kv.Value, ev.Kv.ModRevision).quiet {
				delete(left, e.keys.visible(ev.Kv.Key))
			}
		}
		if len(left) == 0 {
			return
		}
	}
}
