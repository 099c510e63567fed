package etcd

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// TestGone: to the machine a key is gone whoever took it away, its time to live among them.
func TestGone(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]bool{
		"expire": true, "delete": true, "compareAndDelete": true,
		"get": false, "set": false, "create": false, "update": false, "compareAndSwap": false,
	} {
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			const answer = `{"action": %q, "node": {"key": "/k", "modifiedIndex": 7}}`
			if _, err := fmt.Fprintf(w, answer, action); err != nil {
				t.Error(err)
			}
		}))
		c := newClient([]string{s.URL}, nil, "", "", time.Second)
		r, err := perform(t.Context(), c, torchetcd.Action{Kind: torchetcd.Watch, Key: "/k", Index: 7})
		if err != nil || r.Gone != want || r.Key != "/k" || r.Modified != 7 {
			t.Errorf("%s: %+v, %v; want gone %t", action, r, err, want)
		}
		c.close()
	}
}
