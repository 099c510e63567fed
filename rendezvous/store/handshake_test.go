package store

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHandshake: what keeps a client from a server by TLS is said, however the endpoint is written.
func TestHandshake(t *testing.T) {
	t.Parallel()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.EnableHTTP2 = true
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	const requires = "the server requires TLS: give --cacert, --cert and --key"
	at := strings.TrimPrefix(encrypted.URL, "https://")
	for _, c := range []struct {
		endpoint string
		tls      *tls.Config
		want     string // "" if TLS is not what is missing
	}{
		{at, nil, requires},
		{"http://" + at + "/", nil, requires},
		{strings.TrimPrefix(plain.URL, "http://"), nil, ""},
		{"https://" + at, &tls.Config{}, "signed by unknown authority"},
		{"https://" + at + "/", &tls.Config{}, "signed by unknown authority"},
	} {
		err := External{Endpoints: []string{c.endpoint}, TLS: c.tls}.handshake(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with certificates %t: %v, want %q", c.endpoint, c.tls != nil, err, c.want)
		}
	}
}
