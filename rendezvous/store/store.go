// Package store opens what a rendezvous keeps its state in: an etcd cluster
// that exists, or etcd's own server inside this process. Either is handed on as
// a client, so that nothing above it knows the difference.
package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// Store is a client, and the server that it talks to where that is our own.
type Store struct {
	*clientv3.Client
	server *embed.Etcd
	stop   func() // ends what looks after the server
}

// External is a client of an etcd cluster that exists.
type External struct {
	Endpoints          []string // URLs, or host:port
	TLS                *tls.Config
	Username, Password string
	Log                *zap.Logger
}

// ErrRefused says that trying again will not help: the cluster is too old, or lets nobody in by these credentials.
var ErrRefused = errors.New("the store refuses this client")

// dialTimeout is how long an endpoint has to answer for the first time.
const dialTimeout = 5 * time.Second

// Open connects, and returns as soon as one endpoint has told its state: the others may be down. The context is about
// this call alone, and not about the client.
func (e External) Open(ctx context.Context) (*Store, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, TLS: e.TLS, Username: e.Username, Password: e.Password, Logger: logger(e.Log),
		DialTimeout: dialTimeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %q: %w", e.Endpoints, refusal(err))
	}
	if err := answers(ctx, c); err != nil {
		_ = c.Close() // it never was of use
		return nil, fmt.Errorf("connecting to etcd at %q: %w", e.Endpoints, refusal(err))
	}
	return &Store{Client: c}, nil
}

// refusal marks an error after which trying again will not help.
func refusal(err error) error {
	if errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrAuthNotEnabled) || errors.Is(err, rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// answers is nil once an endpoint has answered, and is new enough. The client's own RejectOldCluster wants an answer of
// every endpoint, and so starts nothing while one member of a healthy cluster is down.
func answers(ctx context.Context, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	endpoints := c.Endpoints()
	told := make(chan error, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			r, err := c.Status(ctx, endpoint)
			if err == nil && old(r.Version) {
				err = fmt.Errorf("%w: %s is etcd %s, and it must be 3.5 or newer", ErrRefused, endpoint, r.Version)
			}
			told <- err
		}()
	}
	var errs []error
	for range endpoints {
		err := <-told
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// old says that a version is before 3.5.
func old(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return true
	}
	return major < 3 || major == 3 && minor < 5
}

// Embedded is a server of one member in this process.
type Embedded struct {
	Dir    string // where its data is kept; what an earlier server left there is continued
	Listen string // host:port for other processes; none by default
	Quota  int64  // bytes of its file, beyond which it refuses writes until there is room again; etcd's default of 2 GiB
	Log    *zap.Logger
}

// Open starts the server and waits until it serves. Where nobody else is to reach it, it listens on loopback ports that
// the system chooses: this process talks to it without them.
func (e Embedded) Open(ctx context.Context) (*Store, error) {
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	clients := url.URL{Scheme: "http", Host: cmp.Or(e.Listen, local.Host)}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "tegen", e.Dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{local}, []url.URL{local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger(e.Log))
	if err := os.MkdirAll(e.Dir, 0o700); err != nil { // as etcd wants it
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	cfg.QuotaBackendBytes = e.Quota
	server, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		s := &Store{Client: v3client.New(server.Server), server: server}
		s.tend(logger(e.Log))
		return s, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
}

// start is embed.StartEtcd until the context ends: it waits for as long as another process holds the directory.
func start(ctx context.Context, cfg *embed.Config) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(cfg)
		started <- result{server, err}
	}()
	select {
	case r := <-started:
		return r.server, r.err
	case <-ctx.Done():
		go func() { // if it still starts
			if r := <-started; r.err == nil {
				r.server.Close()
			}
		}()
		return nil, fmt.Errorf("it did not start, perhaps because another process uses the directory: %w", context.Cause(ctx))
	}
}

// Close lets go of the cluster, and stops the server.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	err := s.Client.Close()
	if s.server != nil {
		s.server.Close()
	}
	if errors.Is(err, context.Canceled) { // what an in-process client says of its own end
		return nil
	}
	return err
}

func logger(l *zap.Logger) *zap.Logger {
	if l == nil {
		return zap.NewNop()
	}
	return l
}
