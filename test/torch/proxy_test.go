//go:build linux

package torch

import (
	"os"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/test/ports"
)

// TestProxy: torchrun's agents behind proxies train on while their store is killed, and find each other again
// afterwards. TEGEN_TORCH_AWAY says for how long it is away.
func TestProxy(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run("training/"+v.name, func(t *testing.T) {
			s := etcdProcess(t)
			r := newRun(t, v, "c10d", s.address, "2:3")
			lost := r.start(proxied)
			r.start(proxied)
			r.await("a world of two agents")
			s.kill()
			away(t)
			r.goesOn("while the store is away")
			s.start()
			r.goesOn("after the store came back")
			t.Logf("the longest pause between two sums: %v", r.longestPause())
			r.kill(lost)
			r.start(proxied)
			r.await("after kill -9 of an agent, for which another came")
			r.finish()
		})
		t.Run("joining/"+v.name, func(t *testing.T) {
			s := etcdProcess(t)
			r := newRun(t, v, "c10d", s.address, "2:3")
			r.conf = "last_call_timeout=10"
			r.start(proxied)
			r.start(proxied)
			time.Sleep(8 * time.Second) // about when the last call is under way
			s.kill()
			away(t)
			r.check("joining")
			s.start()
			r.await("a world of two agents, whose store was away while they met")
			r.finish()
		})
	}
}

// away waits for as long as a store is to be away.
func away(t *testing.T) {
	t.Helper()
	d := 3 * time.Second
	if text := os.Getenv("TEGEN_TORCH_AWAY"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(d)
}

// etcdProcess starts an etcd that can be killed and started again: the one that serve starts, where clients reach it.
func etcdProcess(t *testing.T) *server {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address := ports.Address(t)
	s := &server{t: t, address: address, ready: "http://" + address + "/health", command: []string{
		// It ends with its input.
		"sh", "-c", `tail -f /dev/null | "$0" store "$1" "$2" 0`, program, t.TempDir(), address,
	}}
	s.start()
	return s
}
