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

// TestMixed: agents of torch and of ours form one world, and either may be rank 0.
func TestMixed(t *testing.T) {
	start(t)
	t.Run("etcd", func(t *testing.T) { mixedWorlds(t, etcd34(t).address) })
	t.Run("keys", func(t *testing.T) { mixedWorlds(t, serve(t).address) })
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

// mixedWorlds forms worlds of an agent of torch and one of ours, of which one or the other comes first.
func mixedWorlds(t *testing.T, endpoint string) {
	t.Helper()
	for _, v := range versions {
		t.Run(v.name+"/torch-first", func(t *testing.T) {
			r := newRun(t, v, "etcd", endpoint, "2:2")
			inOrder(r, torchrun, tegen)
		})
		t.Run(v.name+"/tegen-first", func(t *testing.T) {
			r := newRun(t, v, "etcd", endpoint, "2:2")
			inOrder(r, tegen, torchrun)
		})
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

// inOrder forms a world of two agents of which the first is rank 0, and ends it.
func inOrder(r *run, first, second kind) {
	r.t.Helper()
	want := r.start(first)
	r.joined()
	r.start(second)
	if names := r.await("a world of two agents"); names[0] != want {
		r.t.Errorf("rank 0 is %s, want %s, who came first", names[0], want)
	}
	r.finish()
}
