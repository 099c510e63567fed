package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// settling is a run whose agents join again whenever their world is over, as those of a job do: where one of them gives
// it up, it ends for all of its members, those that already have what they need to begin among them.
type settling struct {
	id     string
	agents []agent
	begin  time.Time
	hold   time.Duration // that all of them stay in a world
	end    chan struct{}

	mu       sync.Mutex
	versions []int         // of each agent's world, 0 where it has none
	took     time.Duration // until all had the same
	again    int           // so many times an agent has joined once more
	ended    bool
}

// settle lets all agents join, and returns once they have been in one world for a time. What does not get there within
// a limit is an error that says how far it got.
func settle(ctx context.Context, id string, agents []agent, limit, hold time.Duration, endpoint string,
) (*settling, error) {
	r := &settling{
		id: id, agents: agents, begin: time.Now(), hold: hold, end: make(chan struct{}),
		versions: make([]int, len(agents)),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(limit+hold, func() {
		if err := r.unsettled(limit, endpoint); err != nil {
			cancel(err)
		}
	})
	defer late.Stop()
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() {
			if err := r.stay(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return r, context.Cause(ctx)
}

// stay is what an agent does until the end.
func (r *settling) stay(ctx context.Context, i int) error {
	for {
		w, err := r.agents[i].Join(ctx)
		if err != nil {
			return err
		}
		r.note(i, w.Version)
		select {
		case <-w.Changed:
			r.note(i, 0)
		case <-r.end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// note takes down an agent's world. Once all have the same, they hold it.
func (r *settling) note(i, version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[i] = version
	switch {
	case version == 0:
		r.again++
	case r.whole():
		if r.took == 0 {
			r.took = time.Since(r.begin)
		}
		time.AfterFunc(r.hold, func() { r.over(version) })
	}
}

// whole says whether all agents are in one world; the lock is held.
func (r *settling) whole() bool {
	return r.versions[0] != 0 && len(slices.Compact(slices.Clone(r.versions))) == 1
}

// over ends the run that has held a world, unless it has lost that: then all are to hold another one first.
func (r *settling) over(version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole() && r.versions[0] == version && !r.ended {
		r.ended = true
		close(r.end)
	}
}

// unsettled is nil where all agents have held a world, and else says which each has, and what the run's state is.
func (r *settling) unsettled(limit time.Duration, endpoint string) error {
	r.mu.Lock()
	versions, again, ended := slices.Clone(r.versions), r.again, r.ended
	r.mu.Unlock()
	if ended {
		return nil
	}
	return fmt.Errorf("%d agents held no world in %s: they are in versions %v, after %d that ended; the state is %s",
		len(r.agents), limit, versions, again, stateOf(endpoint, r.id))
}

// stateOf is the answer that a server has to a question for a run's state.
func stateOf(endpoint, id string) string {
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get("http://" + endpoint + "/v2/keys/torchelastic/p2p/run_" + id + "/rdzv/active_version")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
