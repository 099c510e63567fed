//go:build linux

package torch

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
	"github.com/tegen-dev/tegen/rendezvous/test/wait"
)

// TestProxy: torchrun's agents behind proxies train on while their store is killed, and find each other again
// afterwards. TEGEN_TORCH_AWAY says for how long it is away.
func TestProxy(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run("training/"+v.name, func(t *testing.T) { trainsOn(t, v, etcdProcess(t)) })
		t.Run("companion/"+v.name, func(t *testing.T) {
			s := newGate(t, "--data-dir="+t.TempDir())
			s.start()
			trainsOn(t, v, s)
		})
		t.Run("joining/"+v.name, func(t *testing.T) {
			s := etcdProcess(t)
			r := newRun(t, v, "c10d", s.address, "2:3")
			r.conf = "last_call_timeout=10"
			r.start(proxied)
			r.start(proxied)
			joined(r, s.address)
			s.kill()
			away(t, 3*time.Second)
			r.check("joining")
			s.start()
			r.await("a world of two agents, whose store was away while they met")
			r.finish()
		})
	}
}

// TestProxyGateways: one of two gateways to an etcd is killed under proxies, and then the other one.
func TestProxyGateways(t *testing.T) {
	start(t)
	endpoint := "--endpoints=" + etcdV3(t)
	a, b := newGate(t, "--store=etcd", endpoint), newGate(t, "--store=etcd", endpoint)
	a.start()
	b.start()
	r := newRun(t, torch26, "c10d", forwarder(t, a, b), "2:3")
	lost := r.start(proxied)
	r.start(proxied)
	r.await("a world of two agents")
	a.kill()
	r.goesOn("after kill -9 of one gateway of two")
	a.start()
	b.kill()
	r.goesOn("after kill -9 of the other gateway")
	t.Logf("the longest pause between two sums: %v", r.longestPause())
	r.kill(lost)
	r.start(proxied)
	r.await("after kill -9 of an agent, for which another came")
	r.finish()
}

// trainsOn kills a world's store, starts it again where it was, and then loses an agent.
func trainsOn(t *testing.T, v version, s *server) {
	t.Helper()
	r := newRun(t, v, "c10d", s.address, "2:3")
	lost := r.start(proxied)
	r.start(proxied)
	r.await("a world of two agents")
	s.kill()
	away(t, 3*time.Second)
	r.mark()
	r.goesOn("while the store is away")
	s.start()
	r.goesOn("after the store came back")
	t.Logf("the longest pause between two sums: %v", r.longestPause())
	r.kill(lost)
	r.start(proxied)
	r.await("after kill -9 of an agent, for which another came")
	r.finish()
}

// TestProxyOutOfReach: no proxy reaches the etcd, which runs, for longer than the heartbeats of a complete round are
// ahead, and longer than torch 1.13 waits for an answer once its agent has formed a world, which is 5 minutes. Agents
// train on in their world, and an agent that came meanwhile is in the next one. TEGEN_TORCH_AWAY says for how long.
func TestProxyOutOfReach(t *testing.T) {
	start(t)
	var runs []*run
	for _, v := range versions {
		r, _ := networkRun(t, v, "2:3")
		r.start(proxied)
		r.start(proxied)
		r.await("a world of two agents")
		runs = append(runs, r)
	}
	for _, r := range runs {
		r.network.cut(here)
	}
	away(t, 340*time.Second)
	for _, r := range runs {
		r.mark()
		r.goesOn("while the etcd is out of reach, with torch " + r.version.name)
		r.start(proxied)
	}
	time.Sleep(5 * time.Second) // the newcomers wait for the etcd
	for _, r := range runs {
		r.mark()
		r.network.mend(here)
	}
	for _, r := range runs {
		r.await("an agent that came while the etcd was out of reach, with torch " + r.version.name)
		r.restarted(1) // of two agents one stops its workers first, and those of the other may fail before theirs do
		r.finish()
	}
}

// TestProxyRecovery: of three agents behind proxies one is lost, and the others go on: how long that takes torch as it
// is, and where its keep-alives are shorter. It is there for the figures.
func TestProxyRecovery(t *testing.T) {
	start(t)
	if os.Getenv("TEGEN_TORCH_BASELINE") != "1" {
		t.Skip("measures torch's own keep-alives: set TEGEN_TORCH_BASELINE=1 to see them")
	}
	for _, v := range versions {
		for name, conf := range map[string]string{"default": "", "1s": ",keep_alive_interval=1"} {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				r := newRun(t, v, "c10d", etcdProcess(t).address, "2:3")
				r.conf += conf
				r.start(proxied)
				r.start(proxied)
				lost := r.start(proxied)
				r.await("a world of three agents")
				r.kill(lost)
				r.await("after kill -9 of " + lost)
				r.finish()
			})
		}
	}
}

// newGate is a tegen-rendezvous that only lets proxies at its store, to be started.
func newGate(t *testing.T, args ...string) *server {
	t.Helper()
	s := newServer(t, append(args, "--listen-client=", "--listen-c10d=")...)
	s.command = append(s.command, "--listen-proxies="+s.address)
	return s
}

// joined waits until both agents of a run have said in the etcd that they join: the first of them writes twice, and
// each has a session from its first write on. Their last call is then under way.
func joined(r *run, address string) {
	r.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it has only read
	wait.Until(r.t, "two agents that join", 3*time.Minute, 100*time.Millisecond, func() error {
		r.check("joining")
		a, err := c.Get(r.t.Context(), "/tegen/c10d/"+r.id+"/", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		sessions, writes := 0, int64(0)
		for _, kv := range a.Kvs {
			switch key := string(kv.Key); {
			case strings.Contains(key, "/sessions/"):
				sessions++
			case strings.Contains(key, "torch.rendezvous"):
				writes = kv.Version
			}
		}
		if sessions < 2 || writes < 3 {
			return fmt.Errorf("%d agents of 2 have written, and the rendezvous has changed %d times of 3", sessions,
				writes)
		}
		return nil
	})
}

// away waits for as long as a store is to be away.
func away(t *testing.T, d time.Duration) {
	t.Helper()
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
	return etcdAt(t, ports.Address(t))
}

func etcdAt(t *testing.T, address string) *server {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, address: address, ready: "http://" + address + "/health", command: []string{
		// It ends with its input.
		"sh", "-c", `tail -f /dev/null | "$0" store "$1" "$2" 0`, program, t.TempDir(), address,
	}}
	s.start()
	return s
}
