//go:build linux

package torch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"
)

// startLimit is what a server may take until it answers.
const startLimit = 30 * time.Second

// freePort is a port of the loopback interface that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it has served its purpose
	return l.Addr().String()
}

// etcd34 starts Debian's etcd with its v2 API, and returns its address.
func etcd34(t *testing.T) string {
	t.Helper()
	address := freePort(t)
	p := spawn(t, "etcd", nil, "/usr/bin/etcd", "--enable-v2", "--data-dir", t.TempDir(),
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", "http://127.0.0.1:0", "--initial-advertise-peer-urls", "http://127.0.0.1:0",
		"--initial-cluster", "default=http://127.0.0.1:0")
	answers(t, p, "http://"+address+"/health")
	return address
}

// answers waits until a server says 200.
func answers(t *testing.T, p *process, url string) {
	t.Helper()
	client := http.Client{Timeout: time.Second}
	last := "nobody asked"
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(50 * time.Millisecond) {
		if p.ended() {
			t.Fatalf("%s has ended: %v", p.name, p.cmd.ProcessState)
		}
		reply, err := client.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		reply.Body.Close()
		if last = reply.Status; reply.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s does not answer at %s: %s", p.name, url, last)
}

// joined waits until the first agent of a run of backend etcd has joined: it will be rank 0.
func (r *run) joined() {
	r.t.Helper()
	url := fmt.Sprintf("http://%s/v2/keys/torchelastic/p2p/run_%s/rdzv/active_version", r.endpoint, r.id)
	client := http.Client{Timeout: 5 * time.Second}
	for {
		if reply, err := client.Get(url); err == nil {
			text, err := io.ReadAll(reply.Body)
			reply.Body.Close()
			if err == nil && participant.Match(text) {
				return
			}
		}
		r.check("joining")
		time.Sleep(100 * time.Millisecond)
	}
}

// participant is one in the state, which is JSON in JSON, with spaces or without.
var participant = regexp.MustCompile(`participants\\": ?\[0\]`)
