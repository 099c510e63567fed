// Package wait has tests wait for what they do not do themselves.
package wait

import (
	"context"
	"testing"
	"time"
)

// Until asks check again and again, with pauses, until it has no complaint; the test fails with the last one where that
// takes too long, and at once where the test is over.
func Until(t testing.TB, what string, within, pause time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: not within %v: %v", what, within, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("waiting for %s: %v: %v", what, context.Cause(t.Context()), err)
		case <-time.After(pause):
		}
	}
}
