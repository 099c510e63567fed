// Package gate lets the proxies of torchruns (package proxystore) at an etcd that is not theirs: the embedded one,
// which listens on a socket, or one for which only this process has credentials. It passes on the requests of etcd's v3
// API that a proxy makes, and the etcd's own answers to them, and keeps nothing but a count: of keys below its prefix,
// which are all that it lets anybody have. What is to be written beyond a limit is refused before the etcd or this
// process runs out of memory.
package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Prefix is what all keys begin with that pass: what proxies have by default.
const Prefix = "/tegen/c10d/"

// Options of a Gate. The zero value of each limit means its default.
type Options struct {
	TLS      *tls.Config // nil for none
	MaxKeys  int         // of all runs, of which one may have half; default 100,000
	MaxBytes int         // of all keys and values, of which one run may have half; default 128 MiB
	MaxWaits int         // watches; default 10,000
	Log      *slog.Logger
	Observer Observer
}

// Observer is told what happens. Its functions must not block; each may be nil.
type Observer struct {
	Request func(method string, code codes.Code, took time.Duration) // a stream took none
	Refused func(reason string)
}

// Gate is a gRPC server.
type Gate struct {
	options Options
	server  *grpc.Server
	behind  atomic.Pointer[behind]
	opened  chan struct{} // is closed once there is one
	opening sync.Once
	usage   *usage
	refused refusals
	conns   atomic.Int64
	waits   atomic.Int64
	ctx     context.Context // of streams
	cancel  context.CancelFunc
	closed  sync.Once
	loading sync.WaitGroup
}

// behind is the etcd.
type behind struct {
	kv          pb.KVClient
	lease       pb.LeaseClient
	watch       pb.WatchClient
	maintenance pb.MaintenanceClient
	conn        *grpc.ClientConn
	room        func() error
}

const (
	// mostRequest is how long a request may be, as etcd has it by default.
	mostRequest = 2 << 20
	// mostAnswer is how long the values that a transaction reads may be, which two always may.
	mostAnswer = 2 * mostRequest
	// mostNames is what an answer has beside values: the keys, which a request names, and what belongs to each.
	mostNames = mostRequest
	// mostListed is how many keys may be listed without a count of what their names take.
	mostListed = 1000
	// mostStreams are requests of a connection that are under way: a proxy makes one after the other beside its waits.
	mostStreams = 100
	// buffer of a connection in each direction: there may be thousands, and requests are short.
	buffer = 4 << 10
)

// New returns a gate whose requests are told to come again until there is an etcd.
func New(o Options) *Gate {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observer.Request == nil {
		o.Observer.Request = func(string, codes.Code, time.Duration) {}
	}
	if o.Observer.Refused == nil {
		o.Observer.Refused = func(string) {}
	}
	if o.MaxWaits == 0 {
		o.MaxWaits = 10_000
	}
	g := &Gate{options: o, usage: newUsage(o), opened: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(mostRequest), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(mostStreams), grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		// Proxies ask each 10 s whether this is still there, and are asked.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 2 * time.Second, PermitWithoutStream: true,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.UnaryInterceptor(g.unary), grpc.StreamInterceptor(g.stream),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errMethod }),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	g.server = grpc.NewServer(options...)
	pb.RegisterKVServer(g.server, &kv{g: g})
	pb.RegisterLeaseServer(g.server, &leases{g: g})
	pb.RegisterWatchServer(g.server, &watches{g: g})
	pb.RegisterMaintenanceServer(g.server, &maintenance{g: g})
	return g
}

// Open begins to pass requests on to an etcd. The client stays the caller's, and is to be closed after the gate. While
// room returns an error nothing is written.
func (g *Gate) Open(c *clientv3.Client, room func() error) error {
	conn := c.ActiveConnection()
	if conn == nil {
		return errors.New("the store is in this process, and proxies cannot be let at it")
	}
	g.behind.Store(&behind{
		pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewWatchClient(conn), pb.NewMaintenanceClient(conn), conn,
		room,
	})
	g.opening.Do(func() { close(g.opened) })
	g.loading.Go(func() { g.usage.follow(g.ctx, c) })
	return nil
}

// Serve answers connections until the gate is closed.
func (g *Gate) Serve(l net.Listener) error {
	if err := g.server.Serve(counted{l, &g.conns}); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Close ends waits, lets what else is under way end while the context lasts, and closes all connections.
func (g *Gate) Close(ctx context.Context) {
	g.closed.Do(func() {
		g.cancel()
		stop := context.AfterFunc(ctx, g.server.Stop)
		defer stop()
		g.server.GracefulStop()
		g.loading.Wait()
	})
}

// Stats are how much there is of each.
type Stats struct {
	Connections, Waits, Runs, Keys, Bytes int
}

// Stats counts what is open, and what is below the prefix in the etcd.
func (g *Gate) Stats() Stats {
	s := g.usage.stats()
	s.Connections, s.Waits = int(g.conns.Load()), int(g.waits.Load())
	return s
}

// Runs are those that have keys, by their ids.
func (g *Gate) Runs() []Run { return g.usage.list() }

var (
	errMethod = status.Error(codes.Unimplemented, "this is no etcd but its gate for proxies of torchrun "+
		"(tegen-rendezvous serve --listen-proxies), which passes on what they need and nothing else")
	errShut   = status.Error(codes.Unavailable, "tegen-rendezvous is shutting down")
	errClosed = status.Error(codes.Unavailable, "the store of tegen-rendezvous is not open yet")
	errAway   = status.Error(codes.Unavailable, "the store of tegen-rendezvous does not answer")
)

// etcd is where to pass a request on to. While that is known to be away nothing is tried: each try is a line in the
// log.
func (g *Gate) etcd() (*behind, error) {
	b := g.behind.Load()
	switch {
	case b == nil:
		return nil, errClosed
	case b.conn.GetState() == connectivity.TransientFailure:
		return nil, errAway
	}
	return b, nil
}

// back is etcd, as soon as it is known not to be away. Who watches and is told to come again does so at once.
func (g *Gate) back(ctx context.Context) (*behind, error) {
	select {
	case <-g.opened:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	for b := g.behind.Load(); ; {
		is := b.conn.GetState()
		if is != connectivity.TransientFailure && is != connectivity.Connecting {
			return b, nil
		}
		if !b.conn.WaitForStateChange(ctx, is) {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// refuse counts what a client may not do, and logs some of it: a client may ask again and again.
func (g *Gate) refuse(code codes.Code, reason, text string) error {
	g.options.Observer.Refused(reason)
	if log, unsaid := g.refused.note(reason, time.Now()); log {
		g.options.Log.Warn("request refused", "reason", reason, "error", text, "unsaid", unsaid)
	}
	return status.Error(code, text)
}

func (g *Gate) unary(ctx context.Context, q any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	a, err := next(ctx, q)
	g.options.Observer.Request(method(info.FullMethod), status.Code(err), time.Since(began))
	return a, plain(err)
}

func (g *Gate) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := next(srv, s)
	if g.ctx.Err() != nil {
		err = errShut
	}
	g.options.Observer.Request(method(info.FullMethod), status.Code(err), 0)
	return plain(err)
}

// plain says what a method is not served for.
func plain(err error) error {
	if status.Code(err) == codes.Unimplemented {
		return errMethod
	}
	return err
}

// methods are those that have a name in metrics; what else is asked for is a client's to invent.
var methods = map[string]string{
	"/etcdserverpb.KV/Range": "range", "/etcdserverpb.KV/Txn": "txn", "/etcdserverpb.KV/DeleteRange": "delete",
	"/etcdserverpb.Lease/LeaseGrant": "grant", "/etcdserverpb.Lease/LeaseRevoke": "revoke",
	"/etcdserverpb.Lease/LeaseKeepAlive": "keepalive", "/etcdserverpb.Lease/LeaseTimeToLive": "lifetime",
	"/etcdserverpb.Watch/Watch": "watch", "/etcdserverpb.Maintenance/Status": "status",
}

func method(full string) string {
	if name, ok := methods[full]; ok {
		return name
	}
	return "other"
}

// counted is a listener that counts connections.
type counted struct {
	net.Listener
	n *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.n.Add(1)
	return &countedConn{Conn: conn, n: c.n}, nil
}

type countedConn struct {
	net.Conn
	n    *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.n.Add(-1) })
	return c.Conn.Close()
}
