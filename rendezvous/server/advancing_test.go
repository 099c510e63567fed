package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// TestWhileAdvancing: a store that does not answer is waited for, on a full disk for much less long.
func TestWhileAdvancing(t *testing.T) {
	full := fmt.Errorf("of the test: %w", store.ErrFull)
	for _, c := range []struct {
		name string
		room error
		want time.Duration // at which it ends: it advances until the fifth second
	}{
		{"with room", nil, 15 * time.Second},
		{"on a full disk", full, 6 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, advanced, stop := whileAdvancing(t.Context(), 10*time.Second, func() error { return c.room })
				defer stop()
				for range 10 {
					time.Sleep(500 * time.Millisecond)
					advanced()
				}
				<-ctx.Done()
				if took := time.Since(began); took != c.want ||
					errors.Is(context.Cause(ctx), store.ErrFull) != (c.room != nil) {
					t.Errorf("it ended after %s: %v, want %s", took, context.Cause(ctx), c.want)
				}
			})
		})
	}
}
