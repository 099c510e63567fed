package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// anySize is for events: of many keys they are longer than gRPC takes by itself.
var anySize = grpc.MaxCallRecvMsgSize(math.MaxInt32)

type kv struct {
	pb.UnimplementedKVServer
	g *Gate
}

func (s *kv) Range(ctx context.Context, q *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.g.checkRange(q); err != nil {
		return nil, err
	}
	if few := q.Limit > 0 && q.Limit <= mostListed; q.KeysOnly && !few && s.g.usage.names(q, mostAnswer) > mostAnswer {
		return nil, errLong
	}
	b, err := s.g.etcd()
	if err != nil {
		return nil, err
	}
	a, err := b.kv.Range(ctx, q, longest)
	return a, tooLong(err)
}

func (s *kv) DeleteRange(ctx context.Context, q *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := s.g.checkDelete(q); err != nil {
		return nil, err
	}
	b, err := s.g.etcd()
	if err != nil {
		return nil, err
	}
	return b.kv.DeleteRange(ctx, q) // whose answer is a number
}

func (s *kv) Txn(ctx context.Context, q *pb.TxnRequest) (*pb.TxnResponse, error) {
	puts, err := s.g.checkTxn(q)
	if err != nil {
		return nil, err
	}
	if max(s.g.usage.size(q.Success), s.g.usage.size(q.Failure)) > mostAnswer {
		return nil, errLong
	}
	b, err := s.g.etcd()
	if err != nil {
		return nil, err
	}
	if len(puts) > 0 {
		if err := b.room(); err != nil { // who waits for it goes on once there is some
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	held, err := s.g.usage.reserve(puts)
	if err != nil {
		return nil, s.g.refuse(codes.ResourceExhausted, "limit", err.Error())
	}
	defer held.release()
	a, err := b.kv.Txn(ctx, q, longest)
	return a, tooLong(err)
}

// longest is how long an answer may be.
var longest = grpc.MaxCallRecvMsgSize(mostAnswer + mostNames)

// tooLong says of an answer that was longer what a proxy understands: old values were, of which there is no count, or
// what has just been written.
func tooLong(err error) error {
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
		return errLong
	}
	return err
}

// errLong has a proxy ask for half as many keys. That is no refusal to be counted: many long values are read like this.
var errLong = status.Errorf(codes.ResourceExhausted, "these keys and their values take more than the %d bytes that "+
	"tegen-rendezvous serve --listen-proxies sends: read fewer keys at a time", mostAnswer)

type watches struct {
	pb.UnimplementedWatchServer
	g *Gate
}

// Watch has a stream to the etcd for each of a client's. The etcd must have a leader, or this ends and is asked anew.
func (s *watches) Watch(from pb.Watch_WatchServer) error {
	ctx, cancel := s.g.during(from.Context())
	defer cancel()
	b, err := s.g.back(ctx)
	if err != nil {
		return err
	}
	to, err := b.watch.Watch(clientv3.WithRequireLeader(ctx), anySize)
	if err != nil {
		return err
	}
	open := waiting{g: s.g, client: from}
	defer open.end()
	return pump(&open, to, func(q *pb.WatchRequest) error {
		create := q.GetCreateRequest()
		if create == nil {
			return nil
		}
		if err := s.g.checkKeys(create.Key, create.RangeEnd); err != nil {
			return err
		}
		if create.PrevKv {
			return s.g.refuse(codes.InvalidArgument, "range", "a watch here has no values from before a change")
		}
		create.Fragment = true // else one answer has all that there is since an early revision; any client joins parts
		return open.begin()
	}, func(a *pb.WatchResponse) {
		if a.Canceled {
			open.less()
		}
	})
}

type maintenance struct {
	pb.UnimplementedMaintenanceServer
	g *Gate
}

// Status is what a client asks for first: it tells the etcd's version.
func (s *maintenance) Status(ctx context.Context, q *pb.StatusRequest) (*pb.StatusResponse, error) {
	b, err := s.g.etcd()
	if err != nil {
		return nil, err
	}
	return b.maintenance.Status(ctx, q)
}

// during is a context of a client's stream that ends with the gate, too.
func (g *Gate) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

type server[Q, A any] interface {
	Recv() (*Q, error)
	Send(*A) error
}

type client[Q, A any] interface {
	Send(*Q) error
	Recv() (*A, error)
	CloseSend() error
}

// errAnswered is of a request that the gate has answered itself.
var errAnswered = errors.New("answered")

// pump passes on what either side says until the etcd has ended the stream, or the client says what it may not.
func pump[Q, A any](from server[Q, A], to client[Q, A], check func(*Q) error, seen func(*A)) error {
	ended := make(chan error, 2)
	go func() { // until the client ends, which it does with this stream
		for {
			q, err := from.Recv()
			if errors.Is(err, io.EOF) {
				_ = to.CloseSend() // what the etcd still has to say comes
				return
			}
			if err == nil {
				err = check(q)
			}
			if errors.Is(err, errAnswered) {
				continue
			}
			if err == nil {
				err = to.Send(q)
			}
			if errors.Is(err, io.EOF) { // the other direction knows why
				return
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		for {
			a, err := to.Recv()
			if err == nil {
				seen(a)
				err = from.Send(a)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// checkRange lets values be read by their keys alone, so that no answer is longer than what one may write.
func (g *Gate) checkRange(q *pb.RangeRequest) error {
	if len(q.RangeEnd) > 0 && !q.KeysOnly && !q.CountOnly {
		return g.refuse(codes.InvalidArgument, "range", "the values of a range of keys are not listed here")
	}
	return g.checkKeys(q.Key, q.RangeEnd)
}

// beyond is the first key behind all that begin with the prefix.
var beyond = clientv3.GetPrefixRangeEnd(Prefix)

func below(key string) bool { return len(key) > len(Prefix) && key[:len(Prefix)] == Prefix }

// checkKeys lets pass what is below the prefix, and no end of a range that means all keys that follow.
func (g *Gate) checkKeys(key, end []byte) error {
	k, e := string(key), string(end)
	if below(k) && (e == "" || k < e && e <= beyond) {
		return nil
	}
	return g.refuse(codes.PermissionDenied, "key", fmt.Sprintf("%.100q is not below %s, and tegen-rendezvous serve "+
		"--listen-proxies lets nobody have other keys of its etcd", k, Prefix))
}

// checkTxn returns what a transaction may write.
func (g *Gate) checkTxn(q *pb.TxnRequest) (puts []*pb.PutRequest, err error) {
	for _, c := range q.Compare {
		if err := g.checkKeys(c.Key, c.RangeEnd); err != nil {
			return nil, err
		}
	}
	for _, ops := range [][]*pb.RequestOp{q.Success, q.Failure} {
		written, err := g.checkOps(ops)
		if err != nil {
			return nil, err
		}
		puts = append(puts, written...)
	}
	return puts, nil
}

// checkOps lets a key be read once, and no range of keys, so that no answer is many times what is there.
func (g *Gate) checkOps(ops []*pb.RequestOp) (puts []*pb.PutRequest, err error) {
	read := map[string]bool{}
	for _, op := range ops {
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			q := o.RequestRange
			if err = g.checkRange(q); err == nil && (len(q.RangeEnd) > 0 || read[string(q.Key)]) {
				err = g.refuse(codes.InvalidArgument, "range", "a transaction reads keys once each here, "+
					"and no range of them")
			}
			read[string(q.Key)] = true
		case *pb.RequestOp_RequestPut:
			if err = g.checkKeys(o.RequestPut.Key, nil); err == nil && o.RequestPut.PrevKv {
				err = g.refuse(codes.InvalidArgument, "range", "the values of keys that are overwritten are not "+
					"listed here")
			}
			puts = append(puts, o.RequestPut)
		case *pb.RequestOp_RequestDeleteRange:
			err = g.checkDelete(o.RequestDeleteRange)
		default:
			err = errMethod // a transaction within it, or what this does not know
		}
		if err != nil {
			return nil, err
		}
	}
	return puts, nil
}

func (g *Gate) checkDelete(q *pb.DeleteRangeRequest) error {
	if q.PrevKv {
		return g.refuse(codes.InvalidArgument, "range", "the values of keys that are deleted are not listed here")
	}
	return g.checkKeys(q.Key, q.RangeEnd)
}
