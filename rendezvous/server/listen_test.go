package server

import (
	"net/http"
	"strings"
	"testing"
)

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
