package server

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/keys"
)

// TestForgetEnded: closed runs of both backends go with all keys that their agents published, others stay, and so does
// one that somebody still asks for.
func TestForgetEnded(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) { c.RunTTL, c.ForgetAfter = 2*time.Hour, 2*time.Second })
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	state := func(closed string) string {
		return b64("\x80\x04\x95\x40\x00\x00\x00\x00\x00\x00\x00\x8c\x10_RendezvousState\x94\x8c\x05round\x94K\x00" +
			"\x8c\x06closed\x94" + closed + "u.")
	}
	const v2, kv = "/torch/elastic/rendezvous/", "/torch/elastic/store/"
	values := map[string]string{
		"/p/run_closed/rdzv/active_version":                     `{"status": "closed"}`,
		"/p/run_asked/rdzv/active_version":                      `{"status": "closed"}`,
		"/p/run_final/rdzv/active_version":                      `{"status": "final", "version": "1"}`,
		v2 + "closed":                                           state("\x88"),
		v2 + "open":                                             state("\x89"),
		kv + b64("torch.rendezvous.closed.0/MASTER_ADDR"):       "a",
		kv + b64("torch.rendezvous.closed2.0/MASTER_ADDR"):      "b",
		kv + b64("torch.rendezvous.closed.v2.0/MASTER_ADDR"):    "c",
		v2 + "team/closed2":                                     state("\x88"),
		kv + b64("torch.rendezvous.team/closed2.0/MASTER_ADDR"): "d",
	}
	for path, value := range values {
		if code := put(t, s, path, url.Values{"value": {value}}.Encode()); code != http.StatusCreated {
			t.Fatalf("%s: %d", path, code)
		}
	}
	there := func(path string) bool {
		_, err := s.opened.Load().keys.Get(t.Context(), path, false) // which is nobody's use
		return err == nil
	}
	for end := time.Now().Add(30 * time.Second); there("/p/run_closed") || there(v2+"closed") ||
		there(v2+"team/closed2"); time.Sleep(200 * time.Millisecond) {
		r, err := http.Get("http://" + s.Address(apiKeys) + "/v2/keys/p/run_asked/rdzv/active_version")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if time.Now().After(end) {
			t.Fatal("closed runs stay")
		}
	}
	for path := range values {
		want := !strings.Contains(path, "run_closed") && path != v2+"closed" &&
			path != kv+b64("torch.rendezvous.closed.0/MASTER_ADDR") &&
			path != v2+"team/closed2" && path != kv+b64("torch.rendezvous.team/closed2.0/MASTER_ADDR")
		if there(path) != want {
			t.Errorf("%s is there: %t", path, !want)
		}
	}
}

// TestIdle: a closed run is idle once nobody has written it for so long, and each write begins that time anew.
func TestIdle(t *testing.T) {
	var seen sightings
	run := func(path string, written uint64) keys.Ended { return keys.Ended{Path: path, Written: written} }
	for second, c := range []struct {
		ended []keys.Ended
		want  []string
	}{
		0: {[]keys.Ended{run("/a", 1), run("/b", 2)}, nil},
		1: {[]keys.Ended{run("/a", 1), run("/b", 3)}, nil},
		2: {[]keys.Ended{run("/a", 1), run("/b", 3)}, []string{"/a"}},
		3: {[]keys.Ended{run("/a", 1), run("/b", 3)}, []string{"/a", "/b"}}, // to be tried until it is gone
		4: {[]keys.Ended{run("/b", 3)}, []string{"/b"}},
		5: {[]keys.Ended{run("/a", 1)}, nil}, // which is a new one
	} {
		var got []string
		for _, e := range seen.idle(c.ended, time.Unix(int64(second), 0), 2*time.Second) {
			got = append(got, e.Path)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", second, diff)
		}
	}
}
