package keys

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGuardsOfNewKey: a new key is written only where it is still missing, and the directory that it was decided to go
// into is still the same one: another process may have deleted it, and made another, meanwhile.
func TestGuardsOfNewKey(t *testing.T) {
	tree := newTree()
	tree.put(change{"/d", &record{Dir: true}, 7, 5}, time.Now(), nil)
	for key, want := range map[string][]guard{
		"/k":     {{"/k", written, 0}},
		"/d/k":   {{"/d/k", written, 0}, {"/d", created, 5}},
		"/d/e/k": {{"/d/e", written, 0}, {"/d", created, 5}},
	} {
		p, err := Put{Value: "x"}.plan(tree, key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.guards, cmp.AllowUnexported(guard{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
