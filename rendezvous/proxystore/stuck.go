package proxystore

import (
	"slices"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// An agent of torch that waits for a lost node does not notice the eviction by itself. The functions of this file end
// what it waits for: its workers, or the agent.

// stopWorkers ends the workers of this engine's agents if the agents have not ended them within Grace. A worker that
// handles SIGTERM does not do so while a collective waits for the lost node, and torch's agents wait for it for 30 s.
func (w *watcher) stopWorkers(own []ownNode) {
	if w.read == nil || w.e.options.Stop == nil || w.e.options.Grace <= 0 || !w.read.hasPlaceholder() {
		return
	}
	if w.lostRound != w.read.round() {
		w.lostRound, w.lostSince = w.read.round(), time.Now()
	}
	takingPart := names(w.read.participants.keys)
	for _, o := range own {
		if slices.Contains(takingPart, o.name) && time.Since(w.lostSince) >= w.e.options.Grace {
			w.e.options.Stop()
			return
		}
	}
}

// restartStuck starts agents anew that do not ask for the state any more although their round has lost a node, or they
// were evicted. Before agents start workers they read each other's ranks from the store, and wait there for a node that
// was lost at that moment, for up to ten minutes. An agent that is evicted meanwhile would keep the others from
// training: whenever it is in the wait list, they form a round, and it does not join.
func (w *watcher) restartStuck(own []ownNode) {
	if w.read == nil || w.e.options.Restart == nil || w.e.options.Grace <= 0 {
		return
	}
	takingPart := names(w.read.participants.keys)
	for _, o := range own {
		lost := !w.read.has(o.name) || w.read.hasPlaceholder() && slices.Contains(takingPart, o.name)
		if lost && w.quietFor(o) >= 3*w.e.options.Grace {
			w.e.options.Restart()
			return
		}
	}
}

// quietFor returns how long an agent has not asked for the state, counting only ticks that reached the etcd.
func (w *watcher) quietFor(o ownNode) time.Duration {
	return time.Duration(o.quiet) * w.e.options.Silence / silentTicks
}

// recordRequest records that an agent asks for the state.
func (w *watcher) recordRequest(c tcpstore.Client, q tcpstore.Request) {
	if w.off || len(q.Keys) == 0 || q.Keys[0] != w.state {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.own[c]; o != nil {
		o.quiet = 0
	}
}

// countQuietTicks adds a tick for each agent, until it asks for the state.
func (w *watcher) countQuietTicks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.own {
		o.quiet++
	}
}
