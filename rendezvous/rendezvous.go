// Package rendezvous is the contract between the agent of an elastic run and a backend. An agent is the process that
// starts workers on one machine. Agents join a run; once enough have come, and no more are waited for, they form a
// world, in which each knows its rank. Whenever agents come or go a new world is formed, with a version of its own.
//
// Package agent uses a Backend. Package etcd implements one with the protocol of PyTorch's etcd rendezvous, which
// package torchetcd decides; package etcdv3 implements one with a protocol of our own.
package rendezvous

import (
	"context"
	"errors"
	"time"
)

// Errors that a backend's methods return, wrapped.
var (
	// ErrClosed says that the run has ended: nobody can join it any more.
	ErrClosed = errors.New("the run is closed")
	// ErrTimeout says that too few agents came in time.
	ErrTimeout = errors.New("too few agents joined in time")
)

// Settings are what all agents of a run must agree on.
type Settings struct {
	RunID    string
	Min, Max int           // agents in a world; 1 ≤ Min ≤ Max
	Join     time.Duration // how long Join tries, torch's join_timeout or timeout
	LastCall time.Duration // how long to wait for more agents than Min
}

// Agent is what an agent publishes to the others.
type Agent struct {
	ID      string // unique among all agents that ever joined the run
	Host    string // name or address at which the workers of the others reach this machine
	Role    string // workers of a role are counted apart as well
	Workers int    // on this machine, torch's local world size
}

// World is a membership, as one of its agents sees it.
type World struct {
	Version     int
	Rank, Size  int // of this agent among the agents, torch's group rank and group world size
	Base, Total int // rank of this agent's first worker, number of workers of all agents
	RoleBase    int // the same among the workers of its role
	RoleTotal   int
	MasterAddr  string // where rank 0's worker is to listen
	MasterPort  int
	// Changed is closed once this world is over: its workers must be stopped, then Join may be called again.
	Changed <-chan struct{}
}

// Backend is one agent's part in one run. Its methods are called by one goroutine.
type Backend interface {
	// Join waits for a world with this agent in it. Called in a world it requests a new one, as after a failure of a
	// worker. It returns ErrClosed, ErrTimeout, or the context's cause; after the latter two the store holds nothing
	// that makes others wait for this agent.
	Join(ctx context.Context) (World, error)
	// Finish says that this agent's workers have succeeded, waits until those of all agents of the world have, at most
	// for the context's time, and closes the run.
	Finish(ctx context.Context) error
	// Fail closes the run for all: this agent's workers have failed for good.
	Fail(ctx context.Context) error
	// Leave removes this agent from the run without closing it, so that the others go on.
	Leave(ctx context.Context) error
	// Close disconnects from the store. It writes nothing.
	Close() error
}
