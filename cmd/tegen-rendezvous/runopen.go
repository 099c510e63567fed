package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/tegen-dev/tegen/rendezvous"
)

// open connects to the run.
func (o *runOptions) open(_ context.Context, self rendezvous.Agent, _ *slog.Logger) (rendezvous.Backend, error) {
	if o.standalone {
		return alone{self}, nil
	}
	return nil, errors.New("this backend is still to be wired")
}

// alone is a world of one agent.
type alone struct{ self rendezvous.Agent }

func (a alone) Join(context.Context) (rendezvous.World, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return rendezvous.World{}, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return rendezvous.World{
		Version: 1, Size: 1, Total: a.self.Workers, RoleTotal: a.self.Workers, MasterAddr: a.self.Host, MasterPort: port, Changed: make(chan struct{}),
	}, l.Close()
}
func (alone) Finish(context.Context) error { return nil }
func (alone) Fail(context.Context) error   { return nil }
func (alone) Leave(context.Context) error  { return nil }
func (alone) Close() error                 { return nil }
