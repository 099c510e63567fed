package store

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// TestEmbedded: what was written is there after a restart.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, want := range []int{0, 1} {
		s, err := Embedded{Dir: dir}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "k")
		if err != nil || len(r.Kvs) != want {
			t.Errorf("start %d: %d keys, %v", i, len(r.Kvs), err)
		}
		if _, err := s.Put(t.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestListen: other processes reach a server that listens.
func TestListen(t *testing.T) {
	t.Parallel()
	_, address := listening(t)
	// One member of a cluster may be down. The context is not the client's.
	opening, opened := context.WithCancel(t.Context())
	client, err := External{Endpoints: []string{"127.0.0.1:1", address}}.Open(opening)
	opened()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := client.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// TestExternal: an etcd that does not answer may answer later, with and without a user. A wrong configuration stays
// wrong.
func TestExternal(t *testing.T) {
	t.Parallel()
	encrypted := encryptedServer(t)
	at := strings.TrimPrefix(encrypted, "https://")
	plain := strings.TrimPrefix(plainServer(t), "http://")
	for name, c := range map[string]struct {
		client External
		away   bool
	}{
		"nothing there":           {External{Endpoints: []string{"127.0.0.1:1"}}, true},
		"nothing there, TLS":      {External{Endpoints: []string{"127.0.0.1:1"}, TLS: &tls.Config{}}, true},
		"nothing there, a user":   {External{Endpoints: []string{"127.0.0.1:1"}, Username: "u", Password: "p"}, true},
		"no endpoint":             {External{}, false},
		"no TLS":                  {External{Endpoints: []string{at}}, false},
		"no TLS, a user":          {External{Endpoints: []string{at}, Username: "u", Password: "p"}, false},
		"an unknown authority":    {External{Endpoints: []string{encrypted}, TLS: &tls.Config{}}, false},
		"TLS with a plain server": {External{Endpoints: []string{plain}, TLS: &tls.Config{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.client.Open(t.Context())
			if err == nil || errors.Is(err, ErrAway) != c.away || errors.Is(err, ErrRefused) {
				t.Errorf("got %v, away: %t", err, errors.Is(err, ErrAway))
			}
		})
	}
}

// TestAwayCodes: an etcd without a leader answers, and is away nevertheless.
func TestAwayCodes(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		rpctypes.ErrNoLeader: true, rpctypes.ErrTimeout: true, rpctypes.ErrPermissionDenied: false,
		status.Error(codes.Unavailable, ""): true, status.Error(codes.Unimplemented, ""): false,
		context.DeadlineExceeded: true, context.Canceled: false,
	} {
		if away(err) != want {
			t.Errorf("%v is away: %t", err, !want)
		}
	}
}

// TestFull: a store that was filled takes writes again by itself.
func TestFull(t *testing.T) {
	t.Parallel()
	s, err := Embedded{Dir: t.TempDir(), Quota: 8 << 20}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	value := strings.Repeat("x", 1<<20)
	for i := 0; err == nil; i++ {
		if i == 100 {
			t.Fatal("it has no quota")
		}
		_, err = s.Put(t.Context(), "k", value)
	}
	for end := time.Now().Add(30 * time.Second); err != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(err)
		}
		_, err = s.Put(t.Context(), "k", value)
	}
}

// TestTaken: a directory that another server uses is an error once there is no more time, and not a wait for ever.
func TestTaken(t *testing.T) {
	t.Parallel()
	// A second server begins in it once the first has ended, perhaps after the test.
	dir, err := os.MkdirTemp("", "taken-") //nolint:usetesting // as said above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Embedded{Dir: dir}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no more time"))
	defer cancel()
	if _, err := (Embedded{Dir: dir}).Open(ctx); err == nil || !strings.Contains(err.Error(), "no more time") {
		t.Errorf("two servers in one directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOld(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"3.4.23": true, "3.5.0": false, "3.6.16": false, "4.0.0": false,
		"2.3.8": true, "": true,
	} {
		if got := old(version); got != want {
			t.Errorf("%q is old: %v", version, got)
		}
	}
}

// TestRefused: credentials that a cluster does not take are an error that says so, and not one to try again after.
func TestRefused(t *testing.T) {
	t.Parallel()
	server, address := listening(t)
	for _, step := range []func() error{
		func() error { _, err := server.RoleAdd(t.Context(), "root"); return err },
		func() error { _, err := server.UserAdd(t.Context(), "root", "right"); return err },
		func() error { _, err := server.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := server.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := External{Endpoints: []string{address}, Username: "root", Password: "wrong"}.Open(t.Context())
	if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
	right, err := External{Endpoints: []string{address}, Username: "root", Password: "right"}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := right.Close(); err != nil {
		t.Error(err)
	}
}

// listening is a server that other processes reach, and where.
func listening(t *testing.T) (server *Store, address string) {
	t.Helper()
	address = ports.Address(t)
	server, err := Embedded{Dir: t.TempDir(), Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, address
}

// TestSparing: within an interval the answer is the one that was heard last.
func TestSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		full := sparing(time.Second, func() error {
			asked++
			if asked == 2 {
				return ErrFull
			}
			return nil
		})
		for _, c := range []struct {
			after time.Duration
			want  error
			asked int
		}{
			{0, nil, 1},
			{999 * time.Millisecond, nil, 1},
			{time.Millisecond, ErrFull, 2},
			{500 * time.Millisecond, ErrFull, 2},
			{time.Minute, nil, 3},
		} {
			time.Sleep(c.after)
			if err := full(); !errors.Is(err, c.want) || asked != c.asked {
				t.Errorf("%s later it says %v, and was asked %d times, not %d", c.after, err, asked, c.asked)
			}
		}
	})
}
