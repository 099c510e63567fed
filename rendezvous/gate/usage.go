package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Run is what is known of one.
type Run struct {
	ID      string
	Keys    int
	Proxies int // that have written
	Changed time.Time
}

// usage counts what is below the prefix in the etcd, by a watch: others write there, too. What is about to be written
// counts as well, or many at once would pass a limit.
type usage struct {
	maxKeys, maxBytes int
	look              time.Duration // between two looks whether it still is the same etcd
	log               *slog.Logger

	mu    sync.Mutex
	keys  map[string]int // bytes of each
	runs  map[string]*sums
	total sums
}

type sums struct {
	keys, bytes, proxies int
	pending              int // bytes that are about to be written
	changed              time.Time
}

func newUsage(o Options) *usage {
	u := &usage{
		maxKeys: cmp.Or(o.MaxKeys, 100_000), maxBytes: cmp.Or(o.MaxBytes, 128<<20), look: 10 * time.Second, log: o.Log,
	}
	u.clear()
	return u
}

func (u *usage) clear() { u.keys, u.runs, u.total = map[string]int{}, map[string]*sums{}, sums{} }

// split is the run that a key below the prefix is of, and whether it is a proxy's own.
func split(key string) (run string, proxy bool) {
	run, rest, _ := strings.Cut(key[len(Prefix):], "/")
	return run, strings.HasPrefix(rest, "sessions/")
}

// set takes over what is known of a key; the lock is held. Keys that are gone have no bytes.
func (u *usage) set(key string, bytes int, at time.Time) {
	was, there := u.keys[key]
	run, proxy := split(key)
	r := u.run(run)
	n := 0
	switch {
	case bytes > 0 && !there:
		n = 1
	case bytes == 0 && there:
		n = -1
	}
	for _, s := range []*sums{r, &u.total} {
		s.bytes += bytes - was
		s.keys += n
		if proxy {
			s.proxies += n
		}
	}
	if r.changed = at; bytes > 0 {
		u.keys[key] = bytes
	} else {
		delete(u.keys, key)
	}
	u.forget(run)
}

func (u *usage) run(name string) *sums {
	r := u.runs[name]
	if r == nil {
		r = &sums{}
		u.runs[name] = r
	}
	return r
}

func (u *usage) forget(run string) {
	if r := u.runs[run]; r != nil && r.keys == 0 && r.pending == 0 {
		delete(u.runs, run)
	}
}

// follow counts until the context ends.
func (u *usage) follow(ctx context.Context, c *clientv3.Client) {
	warned := false
	for ctx.Err() == nil {
		err := u.once(ctx, c)
		switch {
		case err == nil || ctx.Err() != nil:
		case !warned && errors.Is(err, rpctypes.ErrPermissionDenied): // of a part of them there is no limit either
			warned = true
			u.log.Warn("the keys of proxies are not counted: --max-bytes and --max-keys do not hold, and runs are not "+
				"listed; grant the etcd user's role read with the prefix "+Prefix, "error", err)
		default:
			u.log.Debug("counting the keys of proxies", "error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// once counts what is there, and then follows it until the watch ends.
func (u *usage) once(ctx context.Context, c *clientv3.Client) error {
	rev, err := u.load(ctx, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	told := c.Watch(ctx, Prefix, clientv3.WithPrefix(), clientv3.WithRev(rev+1))
	tick := time.NewTicker(u.look)
	defer tick.Stop()
	for {
		select {
		case r, ok := <-told:
			if !ok || r.Err() != nil {
				return r.Err()
			}
			u.note(r.Events)
			rev = max(rev, r.Header.Revision)
		case <-tick.C: // a watch from a revision that an etcd which has lost its data does not have yet says nothing
			r, err := c.Get(ctx, Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err == nil && r.Header.Revision < rev {
				return errors.New("the etcd is empty or older than before")
			}
		}
	}
}

func (u *usage) note(events []*clientv3.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range events {
		bytes := 0
		if e.Type == mvccpb.PUT {
			bytes = len(e.Kv.Key) + len(e.Kv.Value)
		}
		u.set(string(e.Kv.Key), bytes, time.Now())
	}
}

// page is how many keys are read at a time.
const page = 16

func (u *usage) load(ctx context.Context, c *clientv3.Client) (rev int64, err error) {
	all := map[string]int{}
	for from := Prefix; ; {
		r, err := c.Get(ctx, from, clientv3.WithRange(beyond), clientv3.WithLimit(page), clientv3.WithRev(rev))
		if err != nil {
			return 0, fmt.Errorf("reading the keys: %w", err)
		}
		if rev == 0 {
			rev = r.Header.Revision
		}
		for _, kv := range r.Kvs {
			all[string(kv.Key)] = len(kv.Key) + len(kv.Value)
			from = string(kv.Key) + "\x00"
		}
		if !r.More {
			break
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	pending := u.runs
	u.clear()
	for name, r := range pending {
		if r.pending > 0 {
			u.run(name).pending = r.pending
			u.total.pending += r.pending
		}
	}
	for key, bytes := range all {
		u.set(key, bytes, time.Now())
	}
	return rev, nil
}

// reserved is what a request is about to write.
type reserved struct {
	u     *usage
	bytes map[string]int // by run
}

// reserve is an error where puts would go beyond a limit. What does not grow always passes.
func (u *usage) reserve(puts []*pb.PutRequest) (*reserved, error) {
	held := &reserved{u, map[string]int{}}
	if len(puts) == 0 {
		return held, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	keys := map[string]int{}
	for _, p := range puts {
		run, _ := split(string(p.Key))
		was, there := u.keys[string(p.Key)]
		held.bytes[run] += len(p.Key) + len(p.Value) - was
		if !there {
			keys[run]++
		}
	}
	for run, n := range held.bytes {
		r := u.run(run)
		if err := u.fits(run, r, n, keys[run]); err != nil {
			for run := range held.bytes {
				u.forget(run)
			}
			return nil, err
		}
	}
	for run, n := range held.bytes {
		n = max(n, 0)
		held.bytes[run] = n
		u.runs[run].pending += n
		u.total.pending += n
	}
	return held, nil
}

func (u *usage) fits(run string, r *sums, bytes, keys int) error {
	id := unescape(run)
	switch {
	case bytes > 0 && r.bytes+r.pending+bytes > u.maxBytes/2:
		return fmt.Errorf("run %q would take more than %d bytes: half of --max-bytes", id, u.maxBytes/2)
	case bytes > 0 && u.total.bytes+u.total.pending+bytes > u.maxBytes:
		return fmt.Errorf("all runs would take more than %d bytes (--max-bytes)", u.maxBytes)
	case keys > 0 && r.keys+keys > u.maxKeys/2:
		return fmt.Errorf("run %q would have more than %d keys: half of --max-keys", id, u.maxKeys/2)
	case keys > 0 && u.total.keys+keys > u.maxKeys:
		return fmt.Errorf("all runs would have more than %d keys (--max-keys)", u.maxKeys)
	}
	return nil
}

// size is how many bytes the keys have that operations read.
func (u *usage) size(ops []*pb.RequestOp) (bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, op := range ops {
		bytes += u.keys[string(op.GetRequestRange().GetKey())]
	}
	return bytes
}

// names is about how long a list of keys would be, and no longer counted once it is beyond a bound: writes wait for it.
func (u *usage) names(q *pb.RangeRequest, most int) (bytes int) {
	const beside = 64 // what else there is of each
	first, end := string(q.Key), string(q.RangeEnd)
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.keys {
		if key >= first && key < end {
			if bytes += len(key) + beside; bytes > most {
				break
			}
		}
	}
	return bytes
}

// release is called once the etcd has answered. What was written counts from when the watch tells it, moments later.
func (h *reserved) release() {
	h.u.mu.Lock()
	defer h.u.mu.Unlock()
	for run, n := range h.bytes {
		r := h.u.run(run)
		r.pending -= n
		h.u.total.pending -= n
		h.u.forget(run)
	}
}

func (u *usage) stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	runs := 0
	for _, r := range u.runs {
		if r.keys > 0 {
			runs++
		}
	}
	return Stats{Runs: runs, Keys: u.total.keys, Bytes: u.total.bytes}
}

// unescape is a run's id, as it was before it became part of a key.
func unescape(run string) string {
	if id, err := url.PathUnescape(run); err == nil {
		return id
	}
	return run
}

func (u *usage) list() []Run {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Run, 0, len(u.runs))
	for name, r := range u.runs {
		if r.keys > 0 {
			out = append(out, Run{unescape(name), r.keys, r.proxies, r.changed})
		}
	}
	slices.SortFunc(out, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
