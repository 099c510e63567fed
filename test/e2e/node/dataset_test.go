package node

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// downloads answers for hosts of the world on the one port 80 that all scenarios share, from the first file to the end
// of the run: the pods of one scenario may ask while another ends.
type downloads struct {
	start sync.Once
	err   error

	mu    sync.Mutex
	files map[string]*download // by host and path
}

// download is a file that pods may fetch.
type download struct {
	content []byte
	times   atomic.Int64 // that it was asked for
}

// serve has pods find a file at a URL of the world, and returns the count of its downloads.
func (w *world) serve(t *testing.T, address string, content []byte) *atomic.Int64 {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" || at.Port() != "" {
		t.Fatalf("serving %s: it is no URL of port 80: %v", address, err)
	}
	file := &download{content: content}
	w.downloads.mu.Lock()
	if w.downloads.files == nil {
		w.downloads.files = map[string]*download{}
	}
	w.downloads.files[at.Host+at.Path] = file
	w.downloads.mu.Unlock()
	w.downloads.start.Do(func() { w.downloads.err = w.downloads.listen(w.Address()) })
	if w.downloads.err != nil {
		t.Fatalf("serving %s: %v", address, w.downloads.err)
	}
	if err := w.Alias(t.Context(), at.Host); err != nil {
		t.Fatalf("answering for %s: %v", at.Host, err)
	}
	return &file.times
}

// listen serves until the program ends.
func (d *downloads) listen(address string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "80"))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: d}
	go func() { _ = server.Serve(listener) }() // an error is one of the clients, which tell it
	return nil
}

func (d *downloads) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	file := d.files[r.Host+r.URL.Path]
	d.mu.Unlock()
	if file == nil {
		http.NotFound(rw, r)
		return
	}
	file.times.Add(1)
	http.ServeContent(rw, r, r.URL.Path, time.Time{}, bytes.NewReader(file.content))
}
