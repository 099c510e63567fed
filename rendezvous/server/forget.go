package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
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

func missing(err error) bool {
	var e *keys.Error
	return errors.As(err, &e) && e.Status() == http.StatusNotFound
}

// uses is when each run was last asked for here.
type uses struct {
	mu   sync.Mutex
	last map[string]time.Time // by its path
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

// keep forgets all runs but these.
func (u *uses) keep(runs []keys.Run) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := map[string]time.Time{}
	for _, r := range runs {
		if at, ok := u.last[r.Path]; ok {
			kept[r.Path] = at
		}
	}
	u.last = kept
}

// since is how long ago that was, or very long.
func (u *uses) since(path string) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.last[path]
	if !ok {
		return 1 << 62
	}
	return time.Since(at)
}

// runPath is the directory of the run that a key is in.
func runPath(key string) (dir, id string, ok bool) {
	i := strings.Index(key, "/run_")
	if i < 0 {
		return "", "", false
	}
	id, _, _ = strings.Cut(key[i+len("/run_"):], "/")
	return key[:i] + "/run_" + id, id, true
}
