package store

import (
	"slices"
	"testing"
)

// TestEnvironment: the store's process gets half of the processors and collects seldom, unless somebody said otherwise.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		processors int
		want       string
	}{{1, "GOMAXPROCS=1"}, {2, "GOMAXPROCS=1"}, {8, "GOMAXPROCS=4"}} {
		t.Setenv("GOMAXPROCS", "")
		t.Setenv("GOGC", "")
		if env := environment(c.processors); !slices.Contains(env, c.want) || !slices.Contains(env, "GOGC=300") {
			t.Errorf("of %d processors: %q", c.processors, env)
		}
	}
	t.Setenv("GOMAXPROCS", "3")
	t.Setenv("GOGC", "50")
	for _, e := range []string{"GOMAXPROCS=1", "GOGC=300"} {
		if env := environment(2); slices.Contains(env, e) || !slices.Contains(env, "GOMAXPROCS=3") {
			t.Errorf("somebody's own is replaced by %s", e)
		}
	}
}
