//go:build linux

package torch

import "testing"

// TestEtcd: what real torch does on a real etcd, with which everything else is to be compared.
func TestEtcd(t *testing.T) {
	start(t)
	httpWorlds(t, etcd34(t).address)
}

// TestKeysAPI: torch meets by the v2 keys API.
func TestKeysAPI(t *testing.T) {
	start(t)
	httpWorlds(t, serve(t).address)
}

// TestTCPStore: torch meets by the TCPStore, configured by options or by variables alone.
func TestTCPStore(t *testing.T) {
	start(t)
	s := serve(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r := newRun(t, v, "c10d", s.tcpstore, "2:2")
			r.conf += ",is_host=0"
			world(r, torchrun, torchrun)
		})
	}
	t.Run("variables", func(t *testing.T) {
		r := newRun(t, torch26, "c10d", s.tcpstore, "2:2")
		world(r, variables, variables)
	})
}

// httpWorlds forms a world of each version with each backend that speaks etcd's v2 API.
func httpWorlds(t *testing.T, endpoint string) {
	t.Helper()
	for _, backend := range []string{"etcd", "etcd-v2"} {
		for _, v := range versions {
			t.Run(backend+"/"+v.name, func(t *testing.T) {
				r := newRun(t, v, backend, endpoint, "2:2")
				world(r, torchrun, torchrun)
			})
		}
	}
}

// world forms a world of two agents, and ends it.
func world(r *run, first, second kind) {
	r.t.Helper()
	r.start(first)
	r.start(second)
	r.await("a world of two agents")
	r.finish()
}
