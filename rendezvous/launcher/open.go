package launcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/etcd"
	"github.com/tegen-dev/tegen/rendezvous/etcdv3"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// open connects to the run.
func (o *Options) open(ctx context.Context, self rendezvous.Agent, log *slog.Logger) (rendezvous.Backend, error) {
	settings := rendezvous.Settings{
		RunID: o.rdzvID, Min: o.least, Max: o.most, Join: o.conf.join, LastCall: o.conf.lastCall,
	}
	if o.standalone {
		return openStandalone(ctx, settings, self, o.v3Options(log))
	}
	secure, err := o.conf.tls()
	if err != nil {
		return nil, err
	}
	if o.backend == "etcd" {
		a, err := etcd.Open(etcd.Config{
			Endpoints: o.endpoints(), Prefix: o.conf.prefix, TLS: secure, Username: o.conf.user,
			Password:   o.conf.password,
			MasterPort: o.masterPort, Timeout: o.conf.readTimeout, Timings: o.timings(), Log: log,
		}, settings, self)
		if err != nil {
			return nil, err // not a nil *etcd.Agent
		}
		return a, nil
	}
	external := store.External{
		Endpoints: o.endpoints(), TLS: secure, Username: o.conf.user, Password: o.conf.password,
	}
	s, err := connect(ctx, external, o.conf.join, log)
	if err != nil {
		return nil, err
	}
	return newV3(s.Client, settings, self, o.v3Options(log), s.Close)
}

// endpoints are those of --rdzv-endpoint, with torch's port where they have none.
func (o *Options) endpoints() (all []string) {
	for part := range strings.SplitSeq(o.endpoint, ",") {
		scheme, host, ok := strings.Cut(strings.TrimSpace(part), "://")
		if !ok {
			scheme, host = "", scheme
		} else {
			scheme += "://"
		}
		host = strings.TrimRight(host, "/")
		if host == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "2379")
		}
		all = append(all, scheme+host)
	}
	return all
}

// timings are torch's but for what the flags say. torch's agents look only at whether keep-alives exist, so theirs and
// ours may differ.
func (o *Options) timings() (t torchetcd.Timings) {
	t.PeerPoll = o.monitor.Duration
	if o.conf.ttl > 0 {
		t.KeepAliveTTL, t.Renew = o.conf.ttl, o.conf.ttl/2
	}
	return t
}

func (o *Options) v3Options(log *slog.Logger) etcdv3.Options {
	options := etcdv3.Options{Prefix: o.conf.prefix, Lease: o.conf.ttl, Apart: o.conf.apart, Log: log}
	if o.masterPort > 0 {
		options.Port = func() (int, error) { return o.masterPort, nil }
	}
	return options
}

// connect tries until the time is over in which others may join: a store often starts together with its agents.
func connect(ctx context.Context, e store.External, limit time.Duration, log *slog.Logger) (*store.Store, error) {
	deadline := time.After(limit)
	for {
		s, err := e.Open(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrRefused) {
			return s, err
		}
		log.Warn("the store does not answer yet", "error", err)
		select {
		case <-time.After(time.Second):
		case <-deadline:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// openStandalone starts a store that goes with the agent.
func openStandalone(
	ctx context.Context, s rendezvous.Settings, self rendezvous.Agent, options etcdv3.Options,
) (rendezvous.Backend, error) {
	dir, err := os.MkdirTemp("", "tegen-rendezvous-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the store: %w", err)
	}
	embedded, err := store.Embedded{Dir: dir}.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return newV3(embedded.Client, s, self, options, func() error {
		return errors.Join(embedded.Close(), os.RemoveAll(dir))
	})
}

// owner is a backend that also closes its client.
type owner struct {
	rendezvous.Backend
	release func() error
}

func (o owner) Close() error { return errors.Join(o.Backend.Close(), o.release()) }

func newV3(
	c *clientv3.Client, s rendezvous.Settings, self rendezvous.Agent, options etcdv3.Options, release func() error,
) (rendezvous.Backend, error) {
	b, err := etcdv3.New(c, s, self, options)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return owner{b, release}, nil
}
