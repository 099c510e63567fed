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

// Open connects, and asks one endpoint for its state before it returns.
func (e External) Open(ctx context.Context) (*Store, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, TLS: e.TLS, Username: e.Username, Password: e.Password, Logger: logger(e.Log), Context: ctx,
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second, RejectOldCluster: true,
	})
	switch {
	case errors.Is(err, clientv3.ErrOldCluster):
		return nil, fmt.Errorf("connecting to etcd at %q: %w: it must be etcd 3.5 or newer", e.Endpoints, ErrRefused)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrAuthNotEnabled), errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil, fmt.Errorf("connecting to etcd at %q: %w: %w", e.Endpoints, ErrRefused, err)
	case err != nil:
		return nil, fmt.Errorf("connecting to etcd at %q: %w", e.Endpoints, err)
	}
	return &Store{Client: c}, nil
}

// Embedded is a server of one member in this process.
type Embedded struct {
	Dir    string // where its data is kept; what an earlier server left there is continued
	Listen string // host:port for other processes; none by default
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
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModeRevision, "10000"
	if err := os.MkdirAll(e.Dir, 0o700); err != nil { // as etcd wants it
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &Store{Client: v3client.New(server.Server), server: server}, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
}

// Close lets go of the cluster, and stops the server.
func (s *Store) Close() error {
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
