package etcd

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// driver gives a machine its clock, randomness and store. One goroutine steps it; each request has one of its own.
type driver struct {
	client  *client
	log     *slog.Logger
	machine *torchetcd.Machine
	began   time.Time

	calls    chan call
	answers  chan torchetcd.Event
	done     chan struct{}
	watching map[int]context.CancelFunc
	timer    *time.Timer
	asker    chan<- outcome // who waits for what became of its call
	changed  chan struct{}  // of the world, closed once it is over
	silent   atomic.Bool    // the store does not answer, and this is logged
}

// call is an event from outside.
type call struct {
	kind  string
	until time.Duration // from now
	reply chan<- outcome
}

// outcome is what became of a call.
type outcome struct {
	kind    string
	world   torchetcd.Membership
	changed <-chan struct{}
}

func newDriver(c *client, log *slog.Logger, p torchetcd.Protocol) *driver {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &driver{
		client: c, log: log, machine: torchetcd.New(p), began: time.Now(), timer: timer,
		calls: make(chan call), answers: make(chan torchetcd.Event), done: make(chan struct{}),
		watching: map[int]context.CancelFunc{},
	}
}

// run steps the machine until the context ends.
func (d *driver) run(ctx context.Context) {
	defer close(d.done)
	defer d.timer.Stop()
	for {
		var e torchetcd.Event
		select {
		case <-ctx.Done():
			return
		case o := <-d.calls:
			d.asker = o.reply
			d.over() // any call leaves the world
			e = torchetcd.Event{Kind: o.kind, Until: time.Since(d.began) + o.until}
		case e = <-d.answers:
			if cancel := d.watching[e.ID]; cancel != nil {
				cancel()
				delete(d.watching, e.ID)
			}
		case <-d.timer.C:
			e.Kind = torchetcd.EventTick
		}
		e.Now, e.Chance = time.Since(d.began), rand.Float64()
		for _, a := range d.machine.Step(e) {
			d.act(ctx, a)
		}
	}
}

func (d *driver) act(ctx context.Context, a torchetcd.Action) {
	switch a.Kind {
	case torchetcd.Alarm:
		d.timer.Stop()
		if a.At != 0 {
			d.timer.Reset(max(0, a.At-time.Since(d.began)))
		}
	case torchetcd.Drop:
		if cancel := d.watching[a.ID]; cancel != nil {
			cancel()
			delete(d.watching, a.ID)
		}
	case torchetcd.Formed:
		d.changed = make(chan struct{})
		d.log.Info("a world has formed", "version", a.World.Version, "rank", a.World.Rank, "size", a.World.Size)
		d.reply(outcome{kind: a.Kind, world: a.World, changed: d.changed})
	case torchetcd.Changed:
		d.log.Info("the world is over")
		d.over()
	case torchetcd.Ended, torchetcd.TimedOut, torchetcd.Withdrawn:
		d.reply(outcome{kind: a.Kind})
	default:
		d.request(ctx, a)
	}
}

// over reports that the world has ended.
func (d *driver) over() {
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func (d *driver) reply(o outcome) {
	if d.asker != nil {
		d.asker <- o // it is buffered
		d.asker = nil
	}
}

// request makes a request, and always hands the machine a reply.
func (d *driver) request(ctx context.Context, a torchetcd.Action) {
	asking := ctx
	if a.Kind == torchetcd.Watch {
		var cancel context.CancelFunc
		asking, cancel = context.WithCancel(ctx)
		d.watching[a.ID] = cancel
	}
	go func() {
		r, err := perform(asking, d.client, a)
		switch {
		case err == nil && d.silent.Swap(false):
			d.log.Info("the store answers again")
		case err == nil || asking.Err() != nil:
		case a.Kind != torchetcd.Watch && !d.silent.Swap(true): // watches end by themselves now and then
			d.log.Warn("the store does not answer; workers go on meanwhile", "request", a.Kind, "key", a.Key, "error",
				err)
		default:
			d.log.Debug("the store did not answer", "request", a.Kind, "key", a.Key, "error", err)
		}
		select {
		case d.answers <- torchetcd.Event{Kind: torchetcd.EventAnswer, ID: a.ID, Reply: r}:
		case <-ctx.Done():
		}
	}()
}

// perform carries out a request of a machine.
func perform(ctx context.Context, c *client, a torchetcd.Action) (torchetcd.Reply, error) {
	var got answer
	var err error
	switch a.Kind {
	case torchetcd.Get, torchetcd.List:
		got, err = c.get(ctx, a.Key)
	case torchetcd.Watch:
		got, err = c.watch(ctx, a.Key, a.Index, true)
	case torchetcd.Delete:
		got, err = c.remove(ctx, a.Key, url.Values{"prevValue": {a.Previous}})
	default:
		got, err = c.put(ctx, a.Key, options(a))
	}
	if err != nil {
		if n := code(err); n != 0 {
			return torchetcd.Reply{Code: n, Index: index(err)}, nil
		}
		return torchetcd.Reply{Code: torchetcd.Lost}, err
	}
	r := torchetcd.Reply{Key: got.Node.Key, Value: got.Node.Value, Modified: got.Node.ModifiedIndex, Index: got.index}
	switch got.Action {
	case "delete", "compareAndDelete", "expire":
		r.Gone = true
	}
	for _, n := range got.Node.Nodes {
		r.Names, r.Values = append(r.Names, n.Key), append(r.Values, n.Value)
	}
	return r, nil
}

// options are the form of a write.
func options(a torchetcd.Action) url.Values {
	o := url.Values{}
	if a.TTL > 0 {
		o.Set("ttl", seconds(a.TTL))
	}
	switch a.Kind {
	case torchetcd.Mkdir:
		o.Set("dir", "true")
		o.Set("prevExist", "false")
		return o
	case torchetcd.Refresh:
		o.Set("refresh", "true")
		o.Set("prevExist", "true")
		return o
	case torchetcd.Create:
		o.Set("prevExist", "false")
	case torchetcd.Swap:
		o.Set("prevValue", a.Previous)
	case torchetcd.SwapAt:
		o.Set("prevIndex", strconv.FormatUint(a.Index, 10))
		o.Set("prevExist", "true")
	}
	o.Set("value", a.Value)
	return o
}

// call has an event happen, and waits for what becomes of it.
func (d *driver) call(ctx context.Context, kind string, until time.Duration) (outcome, error) {
	reply := make(chan outcome, 1)
	select {
	case d.calls <- call{kind: kind, until: until, reply: reply}:
	case <-d.done:
		return outcome{}, errAgentClosed
	}
	select {
	case o := <-reply:
		return o, nil
	case <-d.done:
		return outcome{}, errAgentClosed
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
}
