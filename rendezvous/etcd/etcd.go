// Package etcd is an agent's part in PyTorch's etcd rendezvous, over etcd's v2 keys API: it forms one world with the
// agents of torch's legacy backend of that name, of 1.13 and of 2.x. Package torchetcd decides; here are its store, its
// clock and its randomness.
package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// DefaultPrefix is the directory of torch's runs.
const DefaultPrefix = "/torchelastic/p2p"

// Torch keeps a run for two hours after its last agent.
const runTTL = 2 * time.Hour

// Config is where the store is, and what is not the same for all agents of a run.
type Config struct {
	Endpoints          []string          // host:port or URLs of members of the cluster; at least one
	Prefix             string            // torch's etcd_prefix; DefaultPrefix if empty
	TLS                *tls.Config       // if not nil, endpoints without a scheme are https
	Username, Password string            // sent as basic authentication if not empty
	MasterPort         int               // where rank 0's worker is to listen; 0 is any free port
	Timeout            time.Duration     // of a request that is no watch; 10 s if zero
	Timings            torchetcd.Timings // those that are zero are torchetcd.Defaults'
	Log                *slog.Logger      // nowhere if nil
}

var (
	errAgentClosed = errors.New("the agent is closed")
	errOver        = errors.New("the world is over")
)

// Agent is a rendezvous.Backend.
type Agent struct {
	config   Config
	settings rendezvous.Settings
	self     rendezvous.Agent
	protocol torchetcd.Protocol
	client   *client
	driver   *driver
	stop     context.CancelFunc
	running  context.Context
	tasks    sync.WaitGroup
	ready    bool // the run's directories exist

	world   torchetcd.Membership // of version 0 where there is none
	changed <-chan struct{}      // of that world
}

var _ rendezvous.Backend = (*Agent)(nil)

// Open returns an agent that has not joined. It sends no request to the store yet.
func Open(c Config, s rendezvous.Settings, self rendezvous.Agent) (*Agent, error) {
	switch {
	case len(c.Endpoints) == 0:
		return nil, errors.New("opening a rendezvous: no endpoints: want at least one host:port or URL")
	case s.RunID == "" || s.Min < 1 || s.Max < s.Min:
		return nil, fmt.Errorf("opening a rendezvous: run %q of %d to %d agents: want a run id and 1 ≤ min ≤ max",
			s.RunID, s.Min, s.Max)
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("run", s.RunID)
	var token [6]byte // of this process, not of the agent's ID: a restarted agent must not be taken for its predecessor
	if _, err := rand.Read(token[:]); err != nil {
		return nil, fmt.Errorf("opening a rendezvous: %w", err)
	}
	a := &Agent{config: c, settings: s, self: self}
	a.protocol = torchetcd.Protocol{
		Dir: path.Join(a.runDir(), "rdzv"), Token: hex.EncodeToString(token[:]),
		Min: s.Min, Max: s.Max, LastCall: s.LastCall, Timings: c.Timings,
	}
	a.client = newClient(c.Endpoints, c.TLS, c.Username, c.Password, c.Timeout)
	a.driver = newDriver(a.client, c.Log, a.protocol)
	a.running, a.stop = context.WithCancel(context.Background())
	a.tasks.Go(func() { a.driver.run(a.running) })
	return a, nil
}

func (a *Agent) runDir() string { return path.Join("/", a.config.Prefix, "run_"+a.settings.RunID) }

// Requests says how many requests this agent has made so far.
func (a *Agent) Requests() Requests { return a.client.requests() }

// Join waits for a world, as Backend says.
func (a *Agent) Join(ctx context.Context) (rendezvous.World, error) {
	until := time.Now().Add(a.settings.Join)
	a.world = torchetcd.Membership{}
	if err := a.prepare(ctx, until); err != nil {
		return rendezvous.World{}, err
	}
	for {
		o, err := a.driver.call(ctx, torchetcd.EventJoin, time.Until(until))
		if err != nil {
			return rendezvous.World{}, a.abandon(err)
		}
		switch o.kind {
		case torchetcd.Ended:
			return rendezvous.World{}, fmt.Errorf("joining run %s: %w", a.settings.RunID, rendezvous.ErrClosed)
		case torchetcd.Formed:
		default:
			return rendezvous.World{}, fmt.Errorf("joining run %s: %w", a.settings.RunID, rendezvous.ErrTimeout)
		}
		w, err := a.exchangeInfo(ctx, o, until)
		switch {
		case err == nil:
			a.world, a.changed = o.world, o.changed
			return w, nil
		case ctx.Err() != nil:
			return rendezvous.World{}, a.abandon(context.Cause(ctx))
		case time.Now().After(until):
			return rendezvous.World{}, a.abandon(rendezvous.ErrTimeout)
		}
		a.config.Log.Info("the world did not form", "version", o.world.Version, "error", err)
		if err := sleep(ctx, time.Second); err != nil {
			return rendezvous.World{}, a.abandon(err)
		}
	}
}

// exchangeInfo gives the members of a new world what they need of each other, until one of them is gone.
func (a *Agent) exchangeInfo(ctx context.Context, o outcome, until time.Time) (rendezvous.World, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, until, rendezvous.ErrTimeout)
	defer cancel()
	ctx, release := within(ctx, o.changed)
	defer release()
	port := a.config.MasterPort
	if port == 0 && o.world.Rank == 0 {
		var err error
		if port, err = freePort(ctx); err != nil {
			return rendezvous.World{}, err
		}
	}
	w, err := a.exchange(ctx, o.world).Join(a.self, port)
	w.Changed = o.changed
	return w, err
}

// within returns a context that also ends with a world.
func within(ctx context.Context, changed <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-changed:
			cancel(errOver)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// abandon removes the agent from what others wait for, and returns the reason wrapped.
func (a *Agent) abandon(why error) error {
	ctx, cancel := context.WithTimeout(a.running, 2*torchetcd.Defaults().Withdraw)
	defer cancel()
	if err := a.leave(ctx); err != nil {
		a.config.Log.Warn("failed to remove this agent from the rendezvous", "error", err)
	}
	return fmt.Errorf("joining run %s: %w", a.settings.RunID, why)
}

func (a *Agent) leave(ctx context.Context) error {
	a.world = torchetcd.Membership{}
	_, err := a.driver.call(ctx, torchetcd.EventLeave, 0)
	return err
}

// prepare creates the run's directories, and refreshes them.
func (a *Agent) prepare(ctx context.Context, until time.Time) error {
	if a.ready {
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, rendezvous.ErrTimeout)
	defer cancel()
	var last error // of the store, and not of the end of the context
	for try := 0; ; try++ {
		err := errors.Join(a.client.discover(ctx), a.mkdirs(ctx))
		if err == nil {
			break
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if try%30 == 0 { // about twice a minute
			a.config.Log.Warn("the store does not answer yet", "error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-a.running.Done():
			return errAgentClosed
		case <-ctx.Done():
			return fmt.Errorf("joining run %s: %w (%w)", a.settings.RunID, context.Cause(ctx), last)
		}
	}
	a.ready = true
	a.tasks.Go(func() { a.keepRun(a.running) })
	return nil
}

func (a *Agent) mkdirs(ctx context.Context) error {
	for _, dir := range []string{path.Join("/", a.config.Prefix), a.runDir(), a.protocol.Dir} {
		o := url.Values{"dir": {"true"}, "prevExist": {"false"}}
		if dir == a.runDir() {
			o.Set("ttl", seconds(runTTL))
		}
		_, err := a.client.put(ctx, dir, o)
		switch n := code(err); {
		case n == torchetcd.CodeExists && dir == a.runDir():
			err = a.refreshRun(ctx)
		case n == torchetcd.CodeExists:
			err = nil
		}
		if err != nil {
			return fmt.Errorf("creating %s: %w", dir, err)
		}
	}
	return nil
}

func (a *Agent) refreshRun(ctx context.Context) error {
	_, err := a.client.put(ctx, a.runDir(), url.Values{
		"ttl": {seconds(runTTL)}, "refresh": {"true"}, "prevExist": {"true"}, "dir": {"true"},
	})
	return err
}

// keepRun keeps the run from expiring while this agent lives.
func (a *Agent) keepRun(ctx context.Context) {
	for pause := runTTL / 2; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = runTTL / 2
		if err := a.mkdirs(ctx); err != nil {
			a.config.Log.Warn("keeping the run", "error", err)
			pause = time.Minute
		}
	}
}

// Finish waits for the others' success, as Backend says. Where they have formed another world meanwhile, this agent
// leaves without closing the run.
func (a *Agent) Finish(ctx context.Context) error {
	if a.world.Version != 0 {
		waiting, release := within(ctx, a.changed)
		defer release()
		if err := a.exchange(waiting, a.world).Finish(); err != nil {
			a.config.Log.Warn("not all agents have finished", "error", err)
			if errors.Is(context.Cause(waiting), errOver) {
				return a.Leave(ctx)
			}
		}
	}
	return a.close(ctx)
}

// Fail closes the run.
func (a *Agent) Fail(ctx context.Context) error { return a.close(ctx) }

// close closes the run within a timeout of its own: the caller's context may have ended while it waited for others.
func (a *Agent) close(ctx context.Context) error {
	a.world = torchetcd.Membership{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.Timeout)
	defer cancel()
	if _, err := a.driver.call(ctx, torchetcd.EventClose, 0); err != nil {
		return fmt.Errorf("closing run %s: %w", a.settings.RunID, err)
	}
	return nil
}

// Leave removes this agent from the run.
func (a *Agent) Leave(ctx context.Context) error {
	if err := a.leave(ctx); err != nil {
		return fmt.Errorf("leaving run %s: %w", a.settings.RunID, err)
	}
	return nil
}

// Close disconnects from the store.
func (a *Agent) Close() error {
	a.stop()
	a.tasks.Wait()
	a.client.close()
	return nil
}
