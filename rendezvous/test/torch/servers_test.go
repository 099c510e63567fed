//go:build linux

package torch

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// startLimit is what a server may take until it answers.
const startLimit = 30 * time.Second

// server is a program that can be killed and started again, on the same address with the same data.
type server struct {
	*process
	t        *testing.T
	address  string // of the HTTP listener, or of the whole
	tcpstore string
	ready    string // URL that says 200
	command  []string
}

// start starts it, for the first time or again, and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	s.process = spawn(s.t, filepath.Base(s.command[0]), nil, s.command[0], s.command[1:]...)
	s.answers()
}

// etcd34 starts Debian's etcd with its v2 API.
func etcd34(t *testing.T) *server {
	t.Helper()
	address := ports.Address(t)
	s := &server{t: t, address: address, ready: "http://" + address + "/health", command: []string{
		"/usr/bin/etcd", "--enable-v2", "--data-dir", t.TempDir(),
		"--listen-client-urls", "http://" + address, "--advertise-client-urls", "http://" + address,
		"--listen-peer-urls", "http://127.0.0.1:0", "--initial-advertise-peer-urls", "http://127.0.0.1:0",
		"--initial-cluster", "default=http://127.0.0.1:0",
	}}
	s.start()
	return s
}

// answers waits until the server says 200.
func (s *server) answers() {
	s.t.Helper()
	client := http.Client{Timeout: time.Second}
	last := "nobody asked"
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(50 * time.Millisecond) {
		if s.ended() {
			s.t.Fatalf("%s has ended: %v", s.name, s.cmd.ProcessState)
		}
		reply, err := client.Get(s.ready)
		if err != nil {
			last = err.Error()
			continue
		}
		reply.Body.Close()
		if last = reply.Status; reply.StatusCode == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("%s does not answer at %s: %s", s.name, s.ready, last)
}

// put sets a key by the v2 API.
func put(t *testing.T, address, key, value string) {
	t.Helper()
	body := strings.NewReader(url.Values{"value": {value}}.Encode())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v2/keys"+key, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != http.StatusCreated {
		t.Fatalf("setting %s: %s", key, reply.Status)
	}
}
