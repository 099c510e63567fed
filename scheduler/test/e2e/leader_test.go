package scheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// TestLeader kills the leading scheduler in the middle of a gang's bindings. The standby finishes the gang.
func TestLeader(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if err := l.scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	const size, pods = 10, 200
	if _, err := l.AddNodes(t.Context(), cluster.NodeOptions{Count: pods / size, GPUs: size}); err != nil {
		t.Fatal(err)
	}
	l.qps = 20 // so that the gang's bindings take some seconds
	// Shorter than the default's 15s, and longer than a leader may get no CPU beside the tests that run at once.
	elected := edited(t, "  leaderElect: true\n", "  leaderElect: true\n  leaseDuration: 9s\n  renewDeadline: 7s\n  "+
		"retryPeriod: 500ms\n")
	first := l.start("first", elected)
	holder := l.holder()
	second := l.start("second", elected)
	for round, leader := range []*cluster.Process{first, second} {
		ns := l.namespace([]string{"first", "second"}[round])
		a := l.audit(size, ns)
		g := of(ns, "g", pods, pods, 1)
		g.with = func(p *corev1.Pod) { p.Spec.NodeSelector = nil }
		l.create(g, 0, pods)
		l.until("the gang is half bound", func() bool { return len(l.bound(g)) >= pods/2 }, l.sight(g))
		before := len(l.bound(g))
		if err := leader.Kill(); err != nil {
			t.Fatal(err)
		}
		t.Logf("the leader was killed with %d to %d of %d pods bound", before, len(l.bound(g)), pods)
		if round == 0 {
			l.until("the standby leads", func() bool { return l.holder() != holder }, l.holder)
		} else {
			l.start("third", elected)
		}
		l.runs(g, pods)
		a.report(t, patience)
		l.drop(g)
		l.gone(g, 0)
	}
}

// holder is who holds the schedulers' Lease.
func (l *lab) holder() string {
	l.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		lease, err := l.Client().CoordinationV1().Leases("kube-system").Get(l.t.Context(), "tegen-scheduler",
			metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			return *lease.Spec.HolderIdentity
		}
	}
	l.t.Fatal("nobody holds the Lease kube-system/tegen-scheduler")
	return ""
}
