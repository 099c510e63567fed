package gate

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// TestWaits: there are so many watches and no more, and who ends one gives its place to another.
func TestWaits(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{MaxWaits: 2})
	ctx, cancel := context.WithCancel(within(t))
	proxy.Watch(ctx, Prefix+"a/1")
	proxy.Watch(ctx, Prefix+"a/2")
	until(t, func() bool { return g.Stats().Waits == 2 })
	refused := create(t, proxy.Client, Prefix+"a/3")
	if r, err := refused.Recv(); err != nil || !r.Created || !r.Canceled || r.WatchId != -1 ||
		!strings.Contains(r.CancelReason, "--max-waits") {
		t.Errorf("got %v, %v", r, err)
	}
	if g.Stats().Waits != 2 {
		t.Errorf("%d waits", g.Stats().Waits)
	}
	cancel()
	until(t, func() bool { return g.Stats().Waits == 0 })
	if err := refused.Send(wanted(&pb.WatchCreateRequest{Key: []byte(Prefix + "a/3")})); err != nil {
		t.Fatal(err)
	}
	if r, err := refused.Recv(); err != nil || !r.Created || r.Canceled {
		t.Errorf("got %v, %v", r, err)
	}
}

// create begins to watch a key on a stream of its own.
func create(t *testing.T, c *clientv3.Client, key string) pb.Watch_WatchClient {
	t.Helper()
	s, err := pb.NewWatchClient(c.ActiveConnection()).Watch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(wanted(&pb.WatchCreateRequest{Key: []byte(key)})); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOneWaitTooMany: a client's earlier watch hears nothing of one that is refused, and goes on.
func TestOneWaitTooMany(t *testing.T) {
	t.Parallel()
	var ended atomic.Int64
	g, proxy, root := begin(t, Options{MaxWaits: 1, Observer: Observer{
		Request: func(method string, _ codes.Code, _ time.Duration) {
			if method == "watch" {
				ended.Add(1)
			}
		},
	}})
	ctx := within(t)
	first := proxy.Watch(ctx, Prefix+"a/1")
	until(t, func() bool { return g.Stats().Waits == 1 })
	for r := range proxy.Watch(ctx, Prefix+"a/2") {
		if !r.Canceled || r.Err() == nil {
			t.Errorf("got %v", r)
		}
	}
	if _, err := root.Put(ctx, Prefix+"a/1", "x"); err != nil {
		t.Fatal(err)
	}
	if r := <-first; r.Err() != nil || len(r.Events) != 1 {
		t.Errorf("got %v", r)
	}
	if ended.Load() > 0 {
		t.Error("the stream of the first has ended")
	}
}

// TestHeld: who watches before there is an etcd, or while it is away, is not sent away but waits for it.
func TestHeld(t *testing.T) {
	t.Parallel()
	at := store.Embedded{Dir: filepath.Join(t.TempDir(), "data"), Listen: filepath.Join(t.TempDir(), "s")}
	server, err := at.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{serve(t, g)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	created := func(s pb.Watch_WatchClient) {
		t.Helper()
		if r, err := s.Recv(); err != nil || !r.Created {
			t.Fatalf("got %v, %v", r, err)
		}
	}
	early := create(t, c, Prefix+"a/1")
	if err := then(clientv3.OpGet(Prefix+"a/1"))(within(t), c); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err) // so the stream has come before there is an etcd
	}
	if err := g.Open(open(t, store.External{Endpoints: []string{"unix://" + at.Listen}}).Client, room); err != nil {
		t.Fatal(err)
	}
	created(early)
	_ = server.Close()
	until(t, func() bool { _, err := g.etcd(); return err != nil })
	late := create(t, c, Prefix+"a/2")
	if server, err = at.Open(within(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	created(late)
}

// TestHeldEnds: who is held can leave, and is told when the gate ends.
func TestHeldEnds(t *testing.T) {
	t.Parallel()
	var ended atomic.Int64
	g := New(Options{Observer: Observer{Request: func(method string, _ codes.Code, _ time.Duration) {
		if method == "watch" {
			ended.Add(1)
		}
	}}})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{serve(t, g)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithCancel(within(t))
	s, err := pb.NewWatchClient(c.ActiveConnection()).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := then(clientv3.OpGet(Prefix+"a/1"))(within(t), c); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err) // so the stream has come
	}
	cancel()
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	until(t, func() bool { return ended.Load() == 1 })
	s = create(t, c, Prefix+"a/1")
	if err := then(clientv3.OpGet(Prefix+"a/1"))(within(t), c); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	g.Close(within(t))
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}

// TestManyEvents: what was written since an early revision comes in parts, and an etcd's client, which did not ask for
// them, makes one answer of them.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	_, proxy, root := begin(t, Options{})
	const key, many = Prefix + "a/1", 8
	for range many {
		if _, err := root.Put(within(t), key, strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := pb.NewWatchClient(proxy.ActiveConnection()).Watch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(wanted(&pb.WatchCreateRequest{Key: []byte(key), StartRevision: 1})); err != nil {
		t.Fatal(err)
	}
	for events := 0; events < many; {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if events += len(r.Events); r.Size() > 3<<20 || r.Fragment != (events > 0 && events < many) {
			t.Errorf("an answer has %d bytes, and is a part of one: %t", r.Size(), r.Fragment)
		}
	}
	if r := <-proxy.Watch(within(t), key, clientv3.WithRev(1)); r.Err() != nil || len(r.Events) != many {
		t.Errorf("%d events: %v", len(r.Events), r.Err())
	}
}

// heard is a client's stream that keeps what it is told.
type heard struct {
	pb.Watch_WatchServer
	all []*pb.WatchResponse
}

func (h *heard) Send(a *pb.WatchResponse) error {
	h.all = append(h.all, a)
	return nil
}

// TestParts: nothing comes between the parts of an answer, and what was to come comes after them.
func TestParts(t *testing.T) {
	t.Parallel()
	g := New(Options{MaxWaits: 1})
	g.waits.Add(1)
	var h heard
	w := waiting{g: g, client: &h}
	for _, part := range []*pb.WatchResponse{{WatchId: 1, Fragment: true}, {WatchId: 1, Fragment: true}, {WatchId: 1}} {
		if err := w.Send(part); err != nil {
			t.Fatal(err)
		}
		if err := w.begin(); !errors.Is(err, errAnswered) {
			t.Fatal(err)
		}
	}
	var ids []int64
	for _, a := range h.all {
		ids = append(ids, a.WatchId)
	}
	if !slices.Equal(ids, []int64{1, 1, 1, -1, -1, -1}) {
		t.Errorf("the client has heard of %v", ids)
	}
}
