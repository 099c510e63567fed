package server

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRequestMetrics: requests are counted by what was done and by code, and timed by what was done, except for waits,
// whose time says how long nothing happened.
func TestRequestMetrics(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	get := func(url string) string {
		t.Helper()
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for range 3 { // the first one makes the key
		put(t, s, "/k", "value=x")
	}
	for range 2 {
		get("http://" + s.Address(apiKeys) + "/v2/keys/k?wait=true&waitIndex=1")
	}
	want := []string{
		`request_seconds_count{action="set",api="etcd-v2"} 3`,
		`requests_total{action="set",api="etcd-v2",code="200"} 2`,
		`requests_total{action="set",api="etcd-v2",code="201"} 1`,
		`requests_total{action="wait",api="etcd-v2",code="200"} 2`,
	}
	counts := regexp.MustCompile(`(?m)(request_seconds_count|requests_total){.*`)
	var got []string
	for end := time.Now().Add(10 * time.Second); !slices.Equal(got, want) && time.Now().Before(end); {
		got = counts.FindAllString(get("http://"+s.Address(apiStatus)+"/metrics"), -1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
