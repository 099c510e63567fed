package store

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// encryptedServer returns the URL of a server that requires TLS.
func encryptedServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// plainServer returns the URL of a server without TLS.
func plainServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

// TestHandshake: what keeps a client from a server by TLS is said, however the endpoint is written.
func TestHandshake(t *testing.T) {
	t.Parallel()
	const requires = "the server requires TLS: give --cacert, --cert and --key"
	at := strings.TrimPrefix(encryptedServer(t), "https://")
	for _, c := range []struct {
		endpoint string
		tls      *tls.Config
		want     string // "" if TLS is not what is missing
	}{
		{at, nil, requires},
		{"http://" + at + "/", nil, requires},
		{strings.TrimPrefix(plainServer(t), "http://"), nil, ""},
		{"https://" + at, &tls.Config{}, "signed by unknown authority"},
		{"https://" + at + "/", &tls.Config{}, "signed by unknown authority"},
	} {
		err := External{Endpoints: []string{c.endpoint}, TLS: c.tls}.handshake(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with certificates %t: %v, want %q", c.endpoint, c.tls != nil, err, c.want)
		}
	}
}
