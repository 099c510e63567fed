package gate

import (
	"sync"
	"time"
)

// refusals are those that were logged, by their reasons, of which there are few.
type refusals struct {
	mu  sync.Mutex
	all map[string]*refusal
}

type refusal struct {
	logged time.Time
	unsaid int // since then
}

// betweenRefusals is how long nothing more is logged of a reason.
const betweenRefusals = 10 * time.Second

// note says whether to log a refusal, and how many of the reason were not since the one before it.
func (r *refusals) note(reason string, now time.Time) (log bool, unsaid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]*refusal{}
	}
	last := r.all[reason]
	if last != nil && now.Sub(last.logged) < betweenRefusals {
		last.unsaid++
		return false, 0
	}
	if last != nil {
		unsaid = last.unsaid
	}
	r.all[reason] = &refusal{logged: now}
	return true, unsaid
}
