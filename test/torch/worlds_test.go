//go:build linux

package torch

import "testing"

// TestEtcd: what real torch does on a real etcd, with which everything else is to be compared.
func TestEtcd(t *testing.T) {
	start(t)
	endpoint := etcd34(t).address
	for _, backend := range []string{"etcd", "etcd-v2"} {
		for _, v := range versions {
			t.Run(backend+"/"+v.name, func(t *testing.T) { world(newRun(t, v, backend, endpoint, "2:2")) })
		}
	}
}

// world forms a world of two torch agents, and ends it.
func world(r *run) {
	r.t.Helper()
	r.torch("a")
	r.torch("b")
	r.await("a world of torch agents")
	r.finish()
}
