// Package store opens what a rendezvous keeps its state in: an etcd cluster
// that exists, or etcd's own server, inside this process or in one of its own.
// Each is handed on as a client, so that nothing above it knows the difference.
package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Store is a client, and the server that it talks to where that is our own.
type Store struct {
	*clientv3.Client
	server *embed.Etcd
	stop   func()       // ends what looks after the server
	after  func() error // ends the server's process
	room   func() error // nil where the disk is not ours
}

// Room is nil while the store's disk has room for another write, as far as this process sees the disk.
func (s *Store) Room() error {
	if s.room == nil {
		return nil
	}
	return s.room()
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

// ErrAway says that no endpoint of the cluster has answered in time. Trying again may help. An error of TLS that the
// flags or the certificates cause is not marked.
var ErrAway = errors.New("the etcd does not answer")

// dialTimeout is how long an endpoint has to answer for the first time.
const dialTimeout = 5 * time.Second

// reconnect bounds the pause between two attempts to connect, which in gRPC grows to 2 minutes: agents would stay away
// long after the store has come back.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second,
	},
	MinConnectTimeout: dialTimeout,
}

// Open connects, and returns as soon as one endpoint has answered: the others may be down. The context is about
// this call alone, and not about the client.
func (e External) Open(ctx context.Context) (*Store, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, TLS: e.TLS, Username: e.Username, Password: e.Password, Logger: logger(e.Log),
		DialTimeout: dialTimeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect)},
	})
	if err == nil {
		if err = answers(ctx, c); err != nil {
			_ = c.Close() // it never was of use
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %q: %w", e.Endpoints, e.cause(ctx, err))
	}
	return &Store{Client: c}, nil
}

// cause marks an error with ErrRefused or ErrAway, and adds why TLS with an endpoint fails. A client with a user fails
// before its first request, since it fetches a token.
func (e External) cause(ctx context.Context, err error) error {
	if errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrAuthNotEnabled) ||
		errors.Is(err, rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if errors.Is(err, ErrRefused) || !away(err) {
		return err
	}
	why := e.handshake(ctx)
	if err = errors.Join(err, why); misconfigured(why) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// away reports whether an etcd has not answered, or has answered that it has no leader.
func away(err error) bool {
	var answer rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &answer) {
		code = answer.Code()
	}
	return errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable
}

// misconfigured reports whether TLS fails by flags or certificates, and not because an endpoint is away.
func misconfigured(err error) bool {
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var alert *net.OpError
	return errors.Is(err, errPlain) || errors.As(err, &certificate) || errors.As(err, &plain) ||
		errors.As(err, &alert) && alert.Op == remoteError
}

// remoteError is the operation of an error that only a server of TLS sends.
const remoteError = "remote error"

// errPlain is of a client without TLS.
var errPlain = errors.New("the server requires TLS: give --cacert, --cert and --key")

// handshake returns why TLS with an endpoint fails, or that a client without TLS needs it. etcd's client only reports
// that its time is over.
func (e External) handshake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	config := &tls.Config{InsecureSkipVerify: true} // nothing is sent, and nothing that is received is used
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	config.NextProtos = []string{"h2"} // as gRPC has it
	for _, endpoint := range e.Endpoints {
		c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address(endpoint))
		if alert := (*net.OpError)(nil); e.TLS == nil {
			if err == nil {
				_ = c.Close() // nothing was written
			}
			if err == nil || errors.As(err, &alert) && alert.Op == remoteError {
				return errPlain
			}
			continue
		}
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(dialTimeout))
			_, err = c.Read(make([]byte, 1)) // a server may refuse a certificate after the handshake
			_ = c.Close()                    // nothing was written
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// address is host:port of an endpoint, which may be a URL.
func address(endpoint string) string {
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	host, _, _ := strings.Cut(endpoint, "/")
	return host
}

// answers is nil once an endpoint has answered, and is new enough. The client's own RejectOldCluster wants an answer of
// every endpoint, and so starts nothing while one member of a healthy cluster is down.
func answers(ctx context.Context, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	endpoints := c.Endpoints()
	answered := make(chan error, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			r, err := c.Status(ctx, endpoint)
			if err == nil && old(r.Version) {
				err = fmt.Errorf("%w: %s is etcd %s, and it must be 3.5 or newer", ErrRefused, endpoint, r.Version)
			}
			answered <- err
		}()
	}
	var errs []error
	for range endpoints {
		err := <-answered
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

// Close lets go of the cluster, and stops the server.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	err := s.Client.Close()
	if s.server != nil {
		s.server.Close()
	}
	if s.after != nil {
		return errors.Join(err, s.after())
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
