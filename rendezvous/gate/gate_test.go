package gate

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/wait"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// etcd starts one that listens on a socket alone, and returns a client of it by a way of its own.
func etcd(t *testing.T) (socket string, root *store.Store) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "s")
	server, err := store.Embedded{Dir: filepath.Join(dir, "data"), Listen: socket}.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return socket, server
}

func open(t *testing.T, e store.External) *store.Store {
	t.Helper()
	s, err := e.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serve returns where a gate listens.
func serve(t *testing.T, g *Gate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		g.Close(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// begin starts a gate before an etcd of its own. There is room for what is written.
func begin(t *testing.T, o Options) (g *Gate, proxy, root *store.Store) {
	t.Helper()
	socket, root := etcd(t)
	g = New(o)
	if err := g.Open(open(t, store.External{Endpoints: []string{"unix://" + socket}}).Client, room); err != nil {
		t.Fatal(err)
	}
	return g, open(t, store.External{Endpoints: []string{serve(t, g)}}), root
}

func room() error { return nil }

// until waits for what must come true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	wait.Until(t, "what must come true", time.Minute, time.Millisecond, func() error {
		if !is() {
			return errors.New("it is not yet so")
		}
		return nil
	})
}

func then(ops ...clientv3.Op) ask {
	return func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Txn(ctx).Then(ops...).Commit()
		return err
	}
}

type ask = func(context.Context, *clientv3.Client) error

// call leaves out what is answered.
func call[A any](f func(context.Context, *clientv3.Client) (A, error)) ask {
	return func(ctx context.Context, c *clientv3.Client) error {
		_, err := f(ctx, c)
		return err
	}
}

// compare is a transaction with a condition, and what it does otherwise.
func compare(of clientv3.Cmp, otherwise ...clientv3.Op) ask {
	return call(func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).If(of).Else(otherwise...).Commit()
	})
}

// foreign are requests for keys that are not below the prefix.
var foreign = map[string]ask{
	"read":            then(clientv3.OpGet("/secret")),
	"read otherwise":  compare(clientv3.Compare(clientv3.Version(Prefix+"a/b"), "=", 7), clientv3.OpGet("/secret")),
	"compare":         compare(clientv3.Compare(clientv3.Value("/secret"), "=", "word")),
	"compare a range": compare(clientv3.Compare(clientv3.Value(Prefix+"a"), "=", "word").WithRange("/z")),
	"write":           then(clientv3.OpPut("/secret", "x")),
	"delete":          then(clientv3.OpDelete("/secret")),
	"get": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, "/secret")
	}),
	"delete alone": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.DeleteResponse, error) {
		return c.Delete(ctx, "/secret")
	}),
	"the prefix itself":  then(clientv3.OpPut(Prefix, "x")),
	"a name like it":     then(clientv3.OpPut("/tegen/c10dx/a", "x")),
	"no key":             then(clientv3.OpDelete("", clientv3.WithPrefix())),
	"all that follow":    then(clientv3.OpDelete(Prefix+"a", clientv3.WithFromKey())),
	"far":                then(clientv3.OpDelete(Prefix+"a", clientv3.WithRange("/z"))),
	"backwards":          then(clientv3.OpDelete(Prefix+"b", clientv3.WithRange(Prefix+"a"))),
	"keys that follow":   then(clientv3.OpGet(Prefix+"a", clientv3.WithFromKey(), clientv3.WithKeysOnly())),
	"a watch":            watch("/secret"),
	"a watch of a range": watch(Prefix+"a", clientv3.WithFromKey()),
}

// unserved are requests that no proxy makes.
var unserved = map[string]ask{
	"a transaction within another": then(clientv3.OpTxn(nil, nil, nil)),
	"a snapshot":                   snapshot,
	"put": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) {
		return c.Put(ctx, Prefix+"a/b", "")
	}),
	"compact": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.CompactResponse, error) {
		return c.Compact(ctx, 1)
	}),
	"leases": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseLeasesResponse, error) {
		return c.Leases(ctx)
	}),
	"members": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return c.MemberList(ctx)
	}),
	"users": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.AuthUserListResponse, error) {
		return c.UserList(ctx)
	}),
	"alarms": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.AlarmResponse, error) {
		return c.AlarmList(ctx)
	}),
}

// invalid are requests that a proxy makes otherwise.
var invalid = map[string]ask{
	"the values of a range of keys are not listed": then(clientv3.OpGet(Prefix+"a", clientv3.WithPrefix())),
	"a transaction reads keys once each":           then(clientv3.OpGet(Prefix+"a"), clientv3.OpGet(Prefix+"a")),
	"and no range of them": then(
		clientv3.OpGet(Prefix+"a", clientv3.WithPrefix(), clientv3.WithKeysOnly())),
	"keys that are deleted are not listed": then(
		clientv3.OpDelete(Prefix+"a", clientv3.WithPrefix(), clientv3.WithPrevKV())),
	"keys that are overwritten are not listed": then(clientv3.OpPut(Prefix+"a/b", "x", clientv3.WithPrevKV())),
	"has no values from before": call(func(ctx context.Context, c *clientv3.Client) (*pb.WatchResponse, error) {
		return created(ctx, c, &pb.WatchCreateRequest{Key: []byte(Prefix + "a/b"), PrevKv: true})
	}),
	"are not listed here": call(func(ctx context.Context, c *clientv3.Client) (*clientv3.DeleteResponse, error) {
		return c.Delete(ctx, Prefix+"a", clientv3.WithPrefix(), clientv3.WithPrevKV())
	}),
	"the etcd chooses": call(func(ctx context.Context, c *clientv3.Client) (*pb.LeaseGrantResponse, error) {
		return pb.NewLeaseClient(c.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 7, TTL: 60})
	}),
	"request is too large": then(clientv3.OpPut(Prefix+"a/b", strings.Repeat("x", 2<<20-500))),
}

// TestForbidden: nothing but keys below the prefix, and nothing but what a proxy asks for.
func TestForbidden(t *testing.T) {
	t.Parallel()
	_, proxy, root := begin(t, Options{})
	if _, err := root.Put(within(t), "/secret", "word"); err != nil {
		t.Fatal(err)
	}
	for code, all := range map[codes.Code]map[string]ask{
		codes.PermissionDenied: foreign, codes.Unimplemented: unserved, codes.InvalidArgument: invalid,
	} {
		for name, do := range all {
			want := map[codes.Code]string{
				codes.PermissionDenied: "is not below /tegen/c10d/", codes.Unimplemented: "no etcd but its gate",
				codes.InvalidArgument: name,
			}[code]
			err := do(within(t), proxy.Client)
			got := status.Code(err)
			var ofEtcd rpctypes.EtcdError
			if errors.As(err, &ofEtcd) {
				got = ofEtcd.Code()
			}
			if err == nil || got != code || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %s %v, want %s: %s", name, got, err, code, want)
			}
		}
	}
	r, err := root.Get(within(t), "", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Value) != "word" || r.Kvs[0].Version != 1 {
		t.Errorf("the etcd has %v, %v", r, err)
	}
}

func snapshot(ctx context.Context, c *clientv3.Client) error {
	r, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = r.Read(make([]byte, 1))
	return err
}

func wanted(create *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

func watch(key string, o ...clientv3.OpOption) ask {
	return call(func(ctx context.Context, c *clientv3.Client) (*pb.WatchResponse, error) {
		op := clientv3.OpGet(key, o...)
		return created(ctx, c, &pb.WatchCreateRequest{Key: op.KeyBytes(), RangeEnd: op.RangeBytes()})
	})
}

// created returns what is answered to a watch first.
func created(ctx context.Context, c *clientv3.Client, create *pb.WatchCreateRequest) (*pb.WatchResponse, error) {
	s, err := pb.NewWatchClient(c.ActiveConnection()).Watch(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Send(wanted(create)); err != nil {
		return nil, err
	}
	return s.Recv()
}

// TestPassword: who comes by the gate needs no credentials, and has no more than those of the gate's user. Limits that
// this user may not count for are warned of.
func TestPassword(t *testing.T) {
	t.Parallel()
	socket, root := etcd(t)
	ctx := within(t)
	end := clientv3.GetPrefixRangeEnd("/tegen/c10d/mine/")
	for _, do := range []func() error{
		func() error { _, err := root.RoleAdd(ctx, "root"); return err },
		func() error { _, err := root.UserAdd(ctx, "root", "r"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.RoleAdd(ctx, "proxies"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "proxies", "/tegen/c10d/mine/", end,
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserAdd(ctx, "gate", "g"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "gate", "proxies"); return err },
		func() error { _, err := root.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	var log lines
	g := New(Options{Log: log.log()})
	behind := open(t, store.External{Endpoints: []string{"unix://" + socket}, Username: "gate", Password: "g"})
	if err := g.Open(behind.Client, room); err != nil {
		t.Fatal(err)
	}
	proxy := open(t, store.External{Endpoints: []string{serve(t, g)}})
	watched := proxy.Watch(ctx, "/tegen/c10d/mine/k")
	if err := then(clientv3.OpPut("/tegen/c10d/mine/k", "v"))(ctx, proxy.Client); err != nil {
		t.Fatal(err)
	}
	for r := range watched {
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		if len(r.Events) > 0 {
			break
		}
	}
	if err := then(clientv3.OpPut("/tegen/c10d/other/k", "v"))(ctx, proxy.Client); err == nil ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("beyond the user's keys: %v", err)
	}
	until(t, func() bool { return log.count("--max-bytes and --max-keys do not hold") == 1 })
}

// TestBytes: a run and all runs have their limits, which what shrinks or goes does not meet.
func TestBytes(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{MaxBytes: 8000})
	put := func(run, key string, n int) error {
		return then(clientv3.OpPut(Prefix+run+"/keys/"+key, strings.Repeat("x", n)))(within(t), proxy.Client)
	}
	counted := func(least int) { t.Helper(); until(t, func() bool { return g.Stats().Bytes >= least }) }
	refused := func(err error, want string) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	passes := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	passes(put("a", "1", 3000))
	counted(3000)
	refused(put("a", "2", 1000), `run "a" would take more than 4000 bytes: half of --max-bytes`)
	passes(put("a", "1", 3500)) // its new value is in the place of the old one
	counted(3500)
	passes(put("b%2Fc", "1", 3900))
	counted(7400)
	refused(put("d", "1", 1000), "all runs would take more than 8000 bytes (--max-bytes)")
	passes(put("a", "1", 10))
	until(t, func() bool { return g.Stats().Bytes < 4200 })
	passes(put("d", "1", 1000))
	counted(4900)
	if _, err := proxy.Delete(within(t), Prefix+"b%2Fc/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return g.Stats().Runs == 2 && g.Stats().Keys == 2 })
	passes(put("b%2Fc", "sessions", 1))
	passes(then(clientv3.OpPut(Prefix+"b%2Fc/sessions/x", ""))(within(t), proxy.Client))
	until(t, func() bool { return len(g.Runs()) == 3 && g.Runs()[1].Proxies == 1 })
	if r := g.Runs()[1]; r.ID != "b/c" || r.Keys != 2 || r.Changed.IsZero() {
		t.Errorf("got %+v", r)
	}
}

// TestRefusedRuns: nothing is kept of the runs of a request that is refused, whatever names a client invents.
func TestRefusedRuns(t *testing.T) {
	t.Parallel()
	u := newUsage(Options{MaxBytes: 200})
	for range 20 { // in any order
		_, err := u.reserve([]*pb.PutRequest{
			{Key: []byte(Prefix + "small/a")}, {Key: []byte(Prefix + "large/a"), Value: make([]byte, 200)},
		})
		if err == nil || len(u.runs) > 0 {
			t.Fatalf("%v, and %d runs are known", err, len(u.runs))
		}
	}
}

// TestKeys: keys have limits of their own, and one transaction may not pass them at once.
func TestKeys(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{MaxKeys: 6})
	ops := func(run string, n int) (all []clientv3.Op) {
		for i := range n {
			all = append(all, clientv3.OpPut(Prefix+run+"/"+string(rune('a'+i)), ""))
		}
		return all
	}
	err := then(ops("a", 4)...)(within(t), proxy.Client)
	const most = `run "a" would have more than 3 keys`
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), most) {
		t.Error(err)
	}
	for _, run := range []string{"a", "b"} {
		if err := then(ops(run, 3)...)(within(t), proxy.Client); err != nil {
			t.Error(err)
		}
	}
	until(t, func() bool { return g.Stats().Keys == 6 })
	err = then(ops("c", 1)...)(within(t), proxy.Client)
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "(--max-keys)") {
		t.Error(err)
	}
	if err := then(ops("a", 3)...)(within(t), proxy.Client); err != nil {
		t.Error(err) // they are there
	}
}

// TestLost: an etcd that comes back empty is counted anew.
func TestLost(t *testing.T) {
	t.Parallel()
	at := store.Embedded{Dir: filepath.Join(t.TempDir(), "data"), Listen: filepath.Join(t.TempDir(), "s")}
	server, err := at.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{})
	g.usage.look = 10 * time.Millisecond
	behind := open(t, store.External{Endpoints: []string{"unix://" + at.Listen}})
	for range 20 {
		if err := then(clientv3.OpPut(Prefix+"a/b", ""))(within(t), behind.Client); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Open(behind.Client, room); err != nil {
		t.Fatal(err)
	}
	proxy := open(t, store.External{Endpoints: []string{serve(t, g)}})
	until(t, func() bool { return g.Stats().Keys == 1 })
	_ = server.Close()
	if err := os.RemoveAll(at.Dir); err != nil {
		t.Fatal(err)
	}
	if server, err = at.Open(within(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	until(t, func() bool { return g.Stats().Keys == 0 })
	until(t, func() bool { return then(clientv3.OpPut(Prefix+"c/d", ""))(within(t), proxy.Client) == nil })
	until(t, func() bool { return g.Stats().Keys == 1 && g.Runs()[0].ID == "c" })
}

// TestBeginAndEnd: before there is an etcd, while it has no room and once the gate ends, clients are told to come
// again.
func TestBeginAndEnd(t *testing.T) {
	t.Parallel()
	socket, _ := etcd(t)
	g := New(Options{})
	at := serve(t, g)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	again := func(err error, want string) {
		t.Helper()
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	put := then(clientv3.OpPut(Prefix+"a/b", ""))
	again(put(within(t), c), "not open yet")
	behind := open(t, store.External{Endpoints: []string{"unix://" + socket}})
	var full atomic.Bool
	if err := g.Open(behind.Client, func() error {
		if full.Load() {
			return store.ErrFull
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := put(within(t), c); err != nil {
		t.Error(err)
	}
	full.Store(true)
	again(put(within(t), c), store.ErrFull.Error())
	if _, err := c.Get(within(t), Prefix+"a/b"); err != nil {
		t.Error(err)
	}
	s, err := pb.NewWatchClient(c.ActiveConnection()).Watch(within(t))
	if err != nil {
		t.Fatal(err)
	}
	create := &pb.WatchCreateRequest{Key: []byte(Prefix + "a/b")}
	if err := s.Send(wanted(create)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	g.Close(within(t))
	_, err = s.Recv()
	again(err, "shutting down")
}

// TestInProcess: an etcd that this process can call and not connect to cannot be passed on to.
func TestInProcess(t *testing.T) {
	t.Parallel()
	_, root := etcd(t)
	if err := New(Options{}).Open(root.Client, room); err == nil {
		t.Error("want an error")
	}
}
