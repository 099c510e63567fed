package launcher

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// refusing is a store that knows nobody's password.
type refusing struct {
	etcdserverpb.UnimplementedAuthServer
}

func (*refusing) Authenticate(
	context.Context, *etcdserverpb.AuthenticateRequest,
) (*etcdserverpb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthFailed
}

// TestRefused: a store that does not let this agent in is not asked again, as one that does not answer yet is.
func TestRefused(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	etcdserverpb.RegisterAuthServer(s, &refusing{})
	go func() { _ = s.Serve(l) }() // until it is stopped
	defer s.Stop()
	external := store.External{Endpoints: []string{l.Addr().String()}, Username: "u", Password: "wrong"}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = connect(ctx, external, time.Minute, slog.New(slog.DiscardHandler))
	if !errors.Is(err, store.ErrRefused) {
		t.Errorf("%v", err)
	}
}
