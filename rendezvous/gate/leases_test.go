package gate

import (
	"errors"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// leased grants a lease, and puts keys on it.
func leased(t *testing.T, c *store.Store, keys ...string) clientv3.LeaseID {
	t.Helper()
	l, err := c.Grant(within(t), 600)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := then(clientv3.OpPut(key, "x", clientv3.WithLease(l.ID)))(within(t), c.Client); err != nil {
			t.Fatal(err)
		}
	}
	return l.ID
}

// TestForeignLeases: no client revokes, renews or reads a lease with keys of others, with or without keys of a proxy.
func TestForeignLeases(t *testing.T) {
	t.Parallel()
	_, proxy, root := begin(t, Options{})
	alone := leased(t, root, "/secret")
	mixed := leased(t, root, Prefix+"a/b", "/word")
	for name, id := range map[string]clientv3.LeaseID{"alone": alone, "mixed": mixed} {
		_, err := proxy.Revoke(within(t), id)
		_, err2 := proxy.KeepAliveOnce(within(t), id)
		_, err3 := proxy.TimeToLive(within(t), id)
		for _, err := range []error{err, err2, err3} {
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "keys that are not below") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	r, err := root.Get(within(t), "/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || r.Count != 3 {
		t.Errorf("of 3 keys %d are left, %v", r.Count, err)
	}
}

// TestOwnLeases: a proxy keeps its leases alive, with keys and without, until it ends them.
func TestOwnLeases(t *testing.T) {
	t.Parallel()
	_, proxy, _ := begin(t, Options{})
	for name, id := range map[string]clientv3.LeaseID{
		"empty": leased(t, proxy), "with keys": leased(t, proxy, Prefix+"a/b", Prefix+"a/c"),
	} {
		if r, err := proxy.KeepAliveOnce(within(t), id); err != nil || r.TTL != 600 {
			t.Errorf("%s: kept alive: %v, %v", name, r, err)
		}
		r, err := proxy.TimeToLive(within(t), id, clientv3.WithAttachedKeys())
		if err != nil || r.GrantedTTL != 600 || len(r.Keys) > 0 {
			t.Errorf("%s: its time to live: %v, %v", name, r, err)
		}
		if _, err := proxy.Revoke(within(t), id); err != nil {
			t.Errorf("%s: ended: %v", name, err)
		}
		if _, err := proxy.Revoke(within(t), id); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("%s: ended again: %v", name, err)
		}
		if _, err := proxy.KeepAliveOnce(within(t), id); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("%s: kept alive when it is not there: %v", name, err)
		}
	}
}

// TestLaterForeign: a lease that held nothing when it was first kept alive is looked at again.
func TestLaterForeign(t *testing.T) {
	t.Parallel()
	_, proxy, root := begin(t, Options{})
	id := leased(t, root)
	s, err := pb.NewLeaseClient(proxy.ActiveConnection()).LeaseKeepAlive(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(within(t), "/secret", "x", clientv3.WithLease(id)); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v", err)
	}
}

// TestLongLease: what would stay for longer than a day is refused so that a proxy does not ask again.
func TestLongLease(t *testing.T) {
	t.Parallel()
	_, proxy, _ := begin(t, Options{})
	if _, err := proxy.Grant(within(t), longestLease); err != nil {
		t.Error(err)
	}
	_, err := proxy.Grant(within(t), longestLease+1)
	const want = "a lease of 86401 s is longer than the 86400 s"
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
