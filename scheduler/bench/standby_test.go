package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// TestReady: a scheduler is ready when the first page says so that it has.
func TestReady(t *testing.T) {
	for _, tt := range []struct {
		reason string
		pages  map[string]int
		want   bool
	}{
		{"kube-scheduler", map[string]int{"/readyz": 200, "/healthz": 200}, true},
		{"it is alive and not ready", map[string]int{"/readyz": 500, "/healthz": 200}, false},
		{"without /readyz", map[string]int{"/healthz": 200}, true},
		{"without /readyz and not ready", map[string]int{"/healthz": 500, "/metrics": 200}, false},
		{"figures alone", map[string]int{"/metrics": 200}, true},
		{"no page", nil, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code, ok := tt.pages[r.URL.Path]; ok {
				w.WriteHeader(code)
				return
			}
			http.NotFound(w, r)
		}))
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
			"clusters": [{"name": "a", "cluster": {"server": "`+server.URL+`"}}],
			"contexts": [{"name": "a", "context": {"cluster": "a"}}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := cluster.At(t.TempDir(), path)
		if err != nil {
			t.Fatal(err)
		}
		s := &standby{bench: &bench{Cluster: c, insecure: server.Client()}, url: server.URL}
		if err := s.ready(t.Context()); (err == nil) != tt.want {
			t.Errorf("%s: got %v, want ready %v", tt.reason, err, tt.want)
		}
		server.Close()
	}
}
