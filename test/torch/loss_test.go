//go:build linux

package torch

import "testing"

// TestEtcdLoss: what real torch does on a real etcd when nodes are lost, and when etcd is.
func TestEtcdLoss(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run("nodes/"+v.name, func(t *testing.T) {
			r := newRun(t, v, "etcd", etcd34(t).address, "2:3")
			losses(r, r.torch, r.torch, r.torch)
		})
	}
	t.Run("store/1.13", func(t *testing.T) {
		s := etcd34(t)
		storeLoss(newRun(t, torch113, "etcd", s.address, "2:3"), s)
	})
}

// losses kills rank 0 of three agents, and once it is replaced, the last. How an agent is started says who replaces it.
func losses(r *run, starts ...func(name string)) {
	r.t.Helper()
	how := map[string]func(string){}
	for i, name := range []string{"a", "b", "c"} {
		how[name] = starts[i]
		how[name](name)
	}
	names := r.await("a world of three agents")
	for i, name := range []string{"d", "e"} {
		lost := names[i*(len(names)-1)]
		r.kill(lost)
		r.await("after kill -9 of " + lost)
		how[name] = how[lost]
		how[name](name)
		names = r.await("after " + name + " came for it")
	}
	r.finish()
}

// storeLoss kills the store under a world of two, starts it again where it was, and lets a third agent join.
func storeLoss(r *run, s *server) {
	r.t.Helper()
	r.torch("a")
	r.torch("b")
	r.await("a world of two agents")
	s.kill()
	s.start()
	r.goesOn("after kill -9 of the store, and its restart")
	r.torch("c")
	r.await("after an agent came")
	r.finish()
}
