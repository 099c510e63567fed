package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/keys"
)

// forget gives runs that would stay for ever a time to live. torch's agents give each run's directory two hours and
// renew them, so that such a run ends by itself; one that another client has made is renewed here for as long as
// anybody asks for anything in it.
func (s *Server) forget(ctx context.Context) {
	tick := time.NewTicker(max(s.config.RunTTL/4, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runs, err := s.opened.Load().keys.Runs(ctx)
		if err != nil {
			s.log.Warn("looking for idle runs", "error", err)
			continue
		}
		s.used.keep(runs)
		for _, r := range runs {
			if err := s.limit(ctx, r.Path); err != nil {
				s.log.Warn("giving a run a time to live", "run", r.ID, "error", err)
			}
		}
	}
}

const (
	// forgetInterval is how often closed runs are looked for, at least twice in the time that they stay.
	forgetInterval = time.Second
	// forgetAlone is how long nobody asks for anything in a run whose clients have gone: torch's write each 5 s, closed
	// or not.
	forgetAlone = 10 * time.Second
	// forgetShared is for a store that others serve as well: of what is asked of them only writes are seen here.
	forgetShared = 30 * time.Second
)

func forgetAfter(alone bool) time.Duration {
	if alone {
		return forgetAlone
	}
	return forgetShared
}

// forgetEnded deletes closed runs once their clients have gone, so that a run of the same id begins anew. torch leaves
// them for two hours, and whoever comes by that name meets a closed run.
func (s *Server) forgetEnded(ctx context.Context, k *keys.Keys) {
	tick := time.NewTicker(min(forgetInterval, s.config.ForgetAfter/2))
	defer tick.Stop()
	var seen sightings
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range seen.idle(k.Ended(), time.Now(), s.config.ForgetAfter) {
			if s.used.since(e.Path) >= s.config.ForgetAfter {
				s.forgetRun(ctx, k, e)
			}
		}
	}
}

// sightings are when closed runs were first seen as they are.
type sightings map[string]sighting

type sighting struct {
	written uint64
	at      time.Time
}

// idle returns the runs that have not been written for so long. It remembers these alone.
func (s *sightings) idle(all []keys.Ended, now time.Time, after time.Duration) (idle []keys.Ended) {
	still := sightings{}
	for _, e := range all {
		seen, ok := (*s)[e.Path]
		if !ok || seen.written != e.Written {
			seen = sighting{e.Written, now}
		}
		still[e.Path] = seen
		if now.Sub(seen.at) >= after {
			idle = append(idle, e)
		}
	}
	*s = still
	return idle
}

func (s *Server) forgetRun(ctx context.Context, k *keys.Keys, e keys.Ended) {
	err := k.Forget(ctx, e)
	switch {
	case status(err) == http.StatusPreconditionFailed: // it has begun anew
	case err == nil || missing(err):
		s.log.Info("run forgotten", "api", apiKeys, "path", e.Path)
	case ctx.Err() == nil:
		s.log.Warn("forgetting a run that has ended", "run", e.Path, "error", err)
	}
}

// limit sets the time to live of a run that has none, and renews ours where the run was in use since.
func (s *Server) limit(ctx context.Context, path string) error {
	e, err := s.opened.Load().keys.Get(ctx, path, false)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	ttl := uint64(s.config.RunTTL / time.Second)
	used := s.used.since(path)
	if e.Node.TTL > 0 && (uint64(e.Node.TTL) > ttl || used >= s.config.RunTTL/2) {
		return nil
	}
	yes := true
	_, err = s.opened.Load().keys.Put(ctx, path, keys.Put{Dir: true, TTL: &ttl, Refresh: true, PrevExist: &yes})
	if missing(err) {
		return nil
	}
	return err
}

func missing(err error) bool { return status(err) == http.StatusNotFound }

// status is that of an error of the keys, 0 of others.
func status(err error) int {
	if e := new(keys.Error); errors.As(err, &e) {
		return e.Status()
	}
	return 0
}

// uses is when each run was last asked for here.
type uses struct {
	mu    sync.Mutex
	last  map[string]time.Time // by its path
	under map[string]int       // requests that are under way, as waits
}

// begin notes a request that is under way, until the returned function is called.
func (u *uses) begin(path string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.under == nil {
		u.under = map[string]int{}
	}
	u.under[path]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.under[path]--; u.under[path] == 0 {
			delete(u.under, path)
		}
	}
}

func (u *uses) note(path string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	if _, ok := u.last[path]; !ok && len(u.last) >= maxUses {
		for other := range u.last { // any: it is noted again when it is used again
			delete(u.last, other)
			break
		}
	}
	u.last[path] = now
}

// maxUses bounds what clients fill by making runs and deleting them: more than that are not at once.
const maxUses = 100_000

// keep forgets all runs but these, and what was used just now.
func (u *uses) keep(runs []keys.Run) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := map[string]time.Time{}
	for _, r := range runs {
		if at, ok := u.last[r.Path]; ok {
			kept[r.Path] = at
		}
	}
	for path, at := range u.last { // the states of backend etcd-v2 are none of these runs
		if time.Since(at) < time.Minute {
			kept[path] = at
		}
	}
	u.last = kept
}

// since is how long ago that was, or very long.
func (u *uses) since(path string) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.under[path] > 0 {
		return 0
	}
	at, ok := u.last[path]
	if !ok {
		return 1 << 62
	}
	return time.Since(at)
}

// usedPath is what a request for a key uses: the directory of its run, or the state of one of backend etcd-v2, unless
// that keeps its states elsewhere: of those only writes are seen.
func usedPath(key string) (string, bool) {
	if dir, _, ok := keys.RunPath(key); ok {
		return dir, true
	}
	_, ok := keys.StateOf(key)
	return key, ok
}
