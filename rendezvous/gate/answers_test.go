package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestAnswer: a transaction is not answered many long values at once, whichever of its ends has them.
func TestAnswer(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{Observer: Observer{Refused: func(reason string) {
		t.Errorf("what a proxy asks for again in parts is counted as refused: %s", reason)
	}}})
	var reads []clientv3.Op
	for i := range 5 {
		key := fmt.Sprintf("%sa/keys/%d", Prefix, i)
		if err := then(clientv3.OpPut(key, strings.Repeat("x", 1<<20)))(within(t), proxy.Client); err != nil {
			t.Fatal(err)
		}
		reads = append(reads, clientv3.OpGet(key))
	}
	until(t, func() bool { return g.Stats().Keys == 5 })
	version := clientv3.Version(Prefix + "a")
	never, always := clientv3.Compare(version, "=", 7), clientv3.Compare(version, "=", 0)
	for name, txn := range map[string]func(...clientv3.Op) clientv3.Txn{
		"then": func(ops ...clientv3.Op) clientv3.Txn { return proxy.Txn(within(t)).If(always).Then(ops...) },
		"else": func(ops ...clientv3.Op) clientv3.Txn { return proxy.Txn(within(t)).If(never).Else(ops...) },
	} {
		_, err := txn(reads...).Commit()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "read fewer keys at a time") {
			t.Errorf("%s: five of 1 MiB: %v", name, err)
		}
		r, err := txn(reads[:3]...).Commit()
		if err != nil || len(r.Responses) != 3 || len(r.Responses[2].GetResponseRange().Kvs[0].Value) != 1<<20 {
			t.Errorf("%s: three of 1 MiB: %v", name, err)
		}
	}
	if _, err := proxy.Txn(within(t)).If(never).Then(reads[:3]...).Else(reads[:3]...).Commit(); err != nil {
		t.Error(err) // three or three
	}
}

// TestListed: names of keys are not listed without end either, by parts all of them.
func TestListed(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{})
	const long, many = 60 << 10, 120
	ctx := within(t)
	for i := range many {
		key := fmt.Sprintf("%sa/keys/%d/%s", Prefix, i, strings.Repeat("k", long))
		if err := then(clientv3.OpPut(key, ""))(ctx, proxy.Client); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return g.Stats().Keys == many })
	list := func(limit int64) (*clientv3.GetResponse, error) {
		return proxy.Get(ctx, Prefix+"a/", clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(limit))
	}
	for _, limit := range []int64{0, mostListed, mostListed + 1} { // by the count, or by the answer's length
		_, err := list(limit)
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "read fewer keys at a time") {
			t.Errorf("at most %d: %v", limit, err)
		}
	}
	if r, err := list(many / 2); err != nil || len(r.Kvs) != many/2 || r.Count != many {
		t.Errorf("half of them: %v", err)
	}
	r, err := proxy.Get(ctx, Prefix+"a/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || r.Count != many {
		t.Errorf("their number: %v", err)
	}
	gone, err := proxy.Delete(ctx, Prefix+"a/", clientv3.WithPrefix())
	if err != nil || gone.Deleted != many {
		t.Errorf("their end: %v", err)
	}
}

// TestListedByCount: what is known to be too long the etcd is not asked for.
func TestListedByCount(t *testing.T) {
	t.Parallel()
	g := New(Options{}) // before there is an etcd
	for i := range 120 {
		g.usage.set(fmt.Sprintf("%sa/keys/%d/%s", Prefix, i, strings.Repeat("k", 60<<10)), 60<<10, time.Now())
	}
	list := &pb.RangeRequest{Key: []byte(Prefix + "a/"), RangeEnd: []byte(Prefix + "a0"), KeysOnly: true}
	if _, err := (&kv{g: g}).Range(t.Context(), list); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("all keys: %v", err)
	}
	if n := g.usage.names(list, 100<<10); n < 100<<10 || n > 200<<10 {
		t.Errorf("counted up to %d, beyond the bound", n)
	}
	list.Key = []byte(Prefix + "a/keys/8")
	if _, err := (&kv{g: g}).Range(t.Context(), list); status.Code(err) != codes.Unavailable {
		t.Errorf("some of them: %v", err)
	}
}

// TestOldValues: what was overwritten is not sent without end either.
func TestOldValues(t *testing.T) {
	t.Parallel()
	g, proxy, _ := begin(t, Options{})
	ctx, rev := within(t), int64(0)
	var now, before []clientv3.Op
	for i := range 8 {
		put := clientv3.OpPut(fmt.Sprintf("%sa/keys/%d", Prefix, i), strings.Repeat("x", 1<<20))
		r, err := proxy.Txn(ctx).Then(put).Commit()
		if err != nil {
			t.Fatal(err)
		}
		rev = r.Header.Revision
	}
	for i := range 8 {
		key := fmt.Sprintf("%sa/keys/%d", Prefix, i)
		if err := then(clientv3.OpPut(key, ""))(ctx, proxy.Client); err != nil {
			t.Fatal(err)
		}
		now, before = append(now, clientv3.OpGet(key)), append(before, clientv3.OpGet(key, clientv3.WithRev(rev)))
	}
	until(t, func() bool { return g.Stats().Keys == 8 && g.Stats().Bytes < 1<<20 })
	if err := then(now...)(ctx, proxy.Client); err != nil {
		t.Error(err)
	}
	err := then(before...)(ctx, proxy.Client)
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "read fewer keys at a time") {
		t.Errorf("eight of 1 MiB: %v", err)
	}
	r, err := proxy.Txn(ctx).Then(before[:4]...).Commit()
	if err != nil || len(r.Responses) != 4 || len(r.Responses[3].GetResponseRange().Kvs[0].Value) != 1<<20 {
		t.Errorf("four of 1 MiB: %v", err)
	}
}
