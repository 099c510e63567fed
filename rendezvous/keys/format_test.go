package keys

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestFormat: a program refuses a store that a newer one has written, and ends when it hears of one beside it: their
// indexes may not mean the same.
func TestFormat(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	client := embedded(t).Client
	failed := make(chan error, 1)
	k, err := Open(ctx, client, Options{Prefix: prefix(t), Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	const newer = `{"format":2,"action":"set","key":"/x"}`
	if _, err := client.Put(ctx, k.head(), newer); err != nil {
		t.Fatal(err)
	}
	const want = "the store has the format 2 of a newer tegen-rendezvous, and this one knows 1"
	select {
	case err := <-failed:
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it ends with %q, want %q", err, want)
		}
	case <-ctx.Done():
		t.Fatal("a program goes on beside a newer one")
	}
	asked, done := context.WithTimeout(ctx, 100*time.Millisecond)
	defer done()
	if _, err := k.Get(asked, "/x", false); err == nil {
		t.Errorf("it still answers: %v", err)
	}
	if _, err := Open(context.WithoutCancel(ctx), client, Options{Prefix: prefix(t)}); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("it begins with %v, want %q", err, want)
	}
}
