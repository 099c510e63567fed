//go:build linux

package torch

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestNodeLoss: nodes are lost, rank 0 and another, and a replacement comes each time.
func TestNodeLoss(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run("keys/"+v.name, func(t *testing.T) { losses(newRun(t, v, "etcd", serve(t).address, "2:3")) })
		if v == torch113 {
			continue // its agents of backend c10d do not survive a loss
		}
		t.Run("tcpstore/"+v.name, func(t *testing.T) {
			r := newRun(t, v, "c10d", serve(t).tcpstore, "2:3")
			r.conf += ",is_host=0"
			losses(r)
		})
	}
}

// TestServeLoss: the whole service is killed, with the store in it, and started again.
func TestServeLoss(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			s := serve(t)
			storeLoss(newRun(t, v, "etcd", s.address, "2:3"), s)
		})
	}
}

// TestGatewayLoss: one of two replicas is killed, behind a Service or known to the agents by name.
func TestGatewayLoss(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run("service/"+v.name, func(t *testing.T) {
			both := gateways(t, false)
			gatewayLoss(newRun(t, v, "etcd", forwarder(t, both[:]...), "2:3"), both)
		})
	}
	t.Run("machines/1.13", func(t *testing.T) {
		both := gateways(t, true)
		gatewayLoss(newRun(t, torch113, "etcd", both[0].address, "2:3"), both)
	})
}

// gatewayLoss kills one gateway under a world of two and lets a third agent join, then the other one and an agent.
func gatewayLoss(r *run, both [2]*server) {
	r.t.Helper()
	r.start(torchrun)
	lost := r.start(torchrun)
	r.await("a world of two agents")
	both[0].kill()
	r.goesOn("after kill -9 of one gateway of two")
	if r.endpoint == both[0].address {
		r.endpoint = both[1].address // where newcomers find somebody
	}
	r.start(torchrun)
	r.await("after an agent came")
	both[0].start()
	both[1].kill()
	r.goesOn("after kill -9 of the other gateway")
	r.kill(lost)
	r.await("after kill -9 of an agent")
	r.finish()
}

// retry is a client that waits for a key.
const retry = `import etcd, sys
client = etcd.Client(host=sys.argv[1], port=int(sys.argv[2]), allow_reconnect=True)
print("waiting", flush=True)
print("got", client.read("/retry", wait=True, timeout=60).value, flush=True)`

// TestRetry: the gateway that holds a long poll is killed. The client that torch has asks the other one.
func TestRetry(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			both := gateways(t, false)
			host, port, err := net.SplitHostPort(forwarder(t, both[:]...))
			if err != nil {
				t.Fatal(err)
			}
			p := v.spawn(t, "client", v.environment(), "/usr/bin/python3", "-c", retry, host, port)
			said(t, p, "waiting")
			for _, s := range both { // one of them holds the long poll
				time.Sleep(time.Second) // nothing tells when it has come there
				s.kill()
				s.start()
			}
			time.Sleep(time.Second)
			put(t, both[0].address, "/retry", "it")
			if code := p.wait(t, startLimit); code != 0 {
				t.Fatalf("the client ended with %d, want 0", code)
			}
			said(t, p, "got it")
		})
	}
}

// said waits until a process has written a line.
func said(t *testing.T, p *process, line string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), line+"\n") {
			return
		}
	}
	t.Fatalf("%s has not said %q", p.name, line)
}

// TestEtcdLoss: what real torch does on a real etcd when nodes are lost, and when etcd is. It shows nothing of ours: it
// is there to compare with where something above fails.
func TestEtcdLoss(t *testing.T) {
	start(t)
	if os.Getenv("TEGEN_TORCH_BASELINE") != "1" {
		t.Skip("shows torch and etcd alone: set TEGEN_TORCH_BASELINE=1 to see them")
	}
	for _, v := range versions {
		t.Run("nodes/"+v.name, func(t *testing.T) {
			losses(newRun(t, v, "etcd", etcd34(t).address, "2:3"))
		})
	}
	t.Run("store/1.13", func(t *testing.T) {
		s := etcd34(t)
		storeLoss(newRun(t, torch113, "etcd", s.address, "2:3"), s)
	})
}

// losses kills rank 0 of three agents, and once it is replaced, the last rank.
func losses(r *run) {
	r.t.Helper()
	for range 3 {
		r.start(torchrun)
	}
	names := r.await("a world of three agents")
	for _, rank := range []int{0, 2} {
		r.kill(names[rank])
		r.await("after kill -9 of " + names[rank])
		r.start(torchrun)
		names = r.await("after another came for it")
	}
	r.finish()
}

// storeLoss kills the store under a world of two, starts it again where it was, and lets a third agent join.
//
// An agent of torch that looks at its store while nobody listens there ends, and torch 1.13 closes the run as it does,
// be the store a real etcd or ours: python-etcd has no other machine to go on with. So the agents look seldom here,
// and the store is back before the first of them has. Their last call is as long, less the keep-alives' 5 seconds that
// pass at least before anybody is missed: with a shorter one, those who look late find a new world without them again
// and again, and each time break it.
func storeLoss(r *run, s *server) {
	r.t.Helper()
	r.monitor, r.conf = "15", "last_call_timeout=12"
	r.start(torchrun)
	r.start(torchrun)
	r.await("a world of two agents")
	s.kill()
	s.start()
	r.goesOn("after kill -9 of the store, and its restart")
	r.start(torchrun)
	r.await("after an agent came")
	r.finish()
}
