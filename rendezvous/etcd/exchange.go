package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// exchange is an exchange of the members of a world, until the context ends.
func (a *Agent) exchange(ctx context.Context, m torchetcd.Membership) torchetcd.Exchange {
	return torchetcd.Exchange{
		Membership: m, Dir: a.protocol.VersionDir(m.Version), Chance: rand.Float64,
		Check: cmp.Or(a.config.Timings.KeepAliveTTL, torchetcd.Defaults().KeepAliveTTL),
		Ask: func(actions []torchetcd.Action) ([]torchetcd.Reply, error) {
			replies := make([]torchetcd.Reply, len(actions))
			var g sync.WaitGroup
			for i, action := range actions {
				g.Go(func() { replies[i] = ask(ctx, a.client, action) })
			}
			g.Wait()
			if ctx.Err() != nil && slices.ContainsFunc(replies, func(r torchetcd.Reply) bool { return r.Code < 0 }) {
				return nil, context.Cause(ctx)
			}
			return replies, nil
		},
	}
}

// ask carries out an action of an exchange.
func ask(ctx context.Context, c *client, a torchetcd.Action) torchetcd.Reply {
	switch a.Kind {
	case torchetcd.Pause:
		if sleep(ctx, a.For) != nil {
			return torchetcd.Reply{Code: torchetcd.Lost}
		}
		return torchetcd.Reply{}
	case torchetcd.Watch:
		watching, cancel := context.WithTimeout(ctx, a.For)
		defer cancel()
		r, err := perform(watching, c, a)
		if err != nil && watching.Err() != nil {
			r.Code = torchetcd.Expired
		}
		return r
	}
	r, _ := perform(ctx, c, a) // of an error the exchange needs nothing but that the request is lost
	return r
}

// freePort returns a free port, which may be taken again before rank 0's worker listens there, as in torch.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return port, nil
}

func index(err error) uint64 {
	var e *apiError
	if errors.As(err, &e) {
		return e.index
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
