package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRunsOfOthers: runs are listed for this machine alone, where kubectl port-forward ends, and not for every pod that
// reads health and metrics.
func TestRunsOfOthers(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) { c.Status = "0.0.0.0:0" })
	for _, c := range []struct {
		path, from, host string
		want             int
	}{
		{"/runs", "127.0.0.1:40000", "localhost:2381", http.StatusOK},
		{"/runs", "[::1]:40000", "127.0.0.1:2381", http.StatusOK},
		{"/runs", "10.1.2.3:40000", "localhost:2381", http.StatusForbidden},
		{"/runs", "10.1.2.3:40000", "10.1.2.4:2381", http.StatusForbidden},
		{"/runs", "127.0.0.1:40000", "evil.example", http.StatusForbidden}, // a page that is open beside port-forward
		{"/metrics", "10.1.2.3:40000", "10.1.2.4:2381", http.StatusOK},
		{"/healthz", "10.1.2.3:40000", "10.1.2.4:2381", http.StatusOK},
		{"/readyz", "10.1.2.3:40000", "10.1.2.4:2381", http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
		r.RemoteAddr, r.Host = c.from, c.host
		w := httptest.NewRecorder()
		s.status.Handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s from %s as %s: %d %s, want %d", c.path, c.from, c.host, w.Code, w.Body, c.want)
		}
	}
}

// TestForeignHost: a listener on a loopback address answers to this machine's names alone, or the page of a foreign
// site whose name leads here could write.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) { c.Hosts = []string{"meet"} })
	for host, want := range map[string]int{
		"": http.StatusCreated, "localhost:1": http.StatusCreated, "127.0.0.2": http.StatusCreated,
		"[::1]:2379": http.StatusCreated,
		"LOCALHOST.": http.StatusCreated, "meet:2379": http.StatusCreated,
		"evil.example": http.StatusForbidden, "localhost.evil.example:2379": http.StatusForbidden,
		"10.0.0.1": http.StatusForbidden,
	} {
		for api, address := range map[string]string{apiKeys: s.Address(apiKeys), apiStatus: s.Address(apiStatus)} {
			method, path, expected := http.MethodPut, "", want
			if api == apiStatus {
				method, path = http.MethodGet, "/runs"
				if want == http.StatusCreated {
					expected = http.StatusOK
				}
			} else {
				path = "/v2/keys/" + strings.NewReplacer("[", "", "]", "", ":", "", ".", "").Replace("k"+host)
			}
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path,
				strings.NewReader("value=1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Host = host
			r, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != expected {
				t.Errorf("%s at the %s listener: got %d, want %d", host, api, r.StatusCode, expected)
			}
		}
	}
	if ours("evil.example", nil) || !ours("127.0.0.1:80", nil) {
		t.Error("names are mistaken")
	}
}
