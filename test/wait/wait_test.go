package wait_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/test/wait"
)

// TestUntil: a check is asked until it has no complaint, and no longer.
func TestUntil(t *testing.T) {
	asked := 0
	wait.Until(t, "the third", time.Hour, time.Nanosecond, func() error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// failing is a test that panics where it would end.
type failing struct{ testing.TB }

func (f *failing) Fatalf(string, ...any) { panic(f) }

// TestUntilFails: what never comes ends the test, though there is no time for a second look.
func TestUntilFails(t *testing.T) {
	f := &failing{t}
	defer func() {
		if recover() != any(f) {
			t.Error("the test goes on without what it waited for")
		}
	}()
	wait.Until(f, "what never comes", 0, 0, func() error { return errors.New("no") })
}
