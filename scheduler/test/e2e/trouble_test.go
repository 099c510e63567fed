package scheduling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// testTrouble: what others do to a gang while it waits, is placed or runs.
func testTrouble(l *lab) {
	l.story("gated", func(l *lab, ns string) {
		l.nodes(ns, 1, 3)
		g := of(ns, "g", 3, 3, 1)
		g.with = func(p *corev1.Pod) {
			if p.Name == "g-1" {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
			}
		}
		l.create(g, 0, 3)
		l.until("the gang waits for the pod that is gated", func() bool {
			p, err := l.kept.Pods(ns).Get("g-0")
			return err == nil &&
				strings.Contains(scheduled(p), "gang gated/g waits for its pods: 2 of at least 3 are there")
		}, l.sight(g))
		l.stays(g, 0)
		if _, err := l.Client().CoreV1().Pods(ns).Patch(l.t.Context(), "g-1", types.JSONPatchType,
			[]byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.runs(g, 3)
	})

	l.story("quota", func(l *lab, ns string) {
		l.nodes(ns, 1, 4)
		l.quota(ns, 2)
		g := of(ns, "g", 3, 3, 1)
		l.create(g, 0, 2)
		if _, err := l.Client().CoreV1().Pods(ns).Create(l.t.Context(), g.pod(2), metav1.CreateOptions{}); err == nil {
			l.t.Fatal("the quota of two pods lets a third one in")
		}
		l.reported(g, "gang quota/g waits for its pods: 2 of at least 3 are there")
		l.stays(g, 0)
		l.quota(ns, 3)
		l.until("the third pod is let in", func() bool {
			_, err := l.Client().CoreV1().Pods(ns).Create(l.t.Context(), g.pod(2), metav1.CreateOptions{})
			return err == nil
		}, l.sight(g))
		l.runs(g, 3)
	})

	l.story("node-lost-at-permit", func(l *lab, ns string) {
		l.nodes(ns, 1, 1)
		g := of(ns, "g", 3, 3, 1, gangcache.ModeKey, "NonStrict", gangcache.WaitingTime, "10m")
		lost := l.nodes(ns, 1, 1)[0]
		l.create(g, 0, 3)
		single := gang{namespace: ns, name: "single", gpus: 1}
		l.create(single, 0, 1)
		l.reported(single, "Insufficient") // the gang holds both places
		if err := l.Client().CoreV1().Nodes().Delete(l.t.Context(), lost, metav1.DeleteOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.nodes(ns, 1, 3) // one of which the single pod may take
		l.runs(g, 3)
		for _, p := range l.pods(g) {
			if p.Spec.NodeName == lost {
				l.t.Errorf("pod %s is bound to a node that was deleted while it waited", p.Name)
			}
		}
	})
}

// quota lets so many pods into a namespace, once its controller has said so.
func (l *lab) quota(ns string, pods int) {
	l.t.Helper()
	hard := corev1.ResourceList{corev1.ResourcePods: quantity(fmt.Sprint(pods))}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: ns}}
	q.Spec.Hard = hard
	quotas := l.Client().CoreV1().ResourceQuotas(ns)
	_, err := quotas.Create(l.t.Context(), q, metav1.CreateOptions{})
	if err != nil {
		_, err = quotas.Patch(l.t.Context(), "pods", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"hard":{"pods":"%d"}}}`, pods), metav1.PatchOptions{})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("the quota holds", func() bool {
		now, err := quotas.Get(l.t.Context(), "pods", metav1.GetOptions{})
		return err == nil && now.Status.Hard.Pods().Value() == int64(pods)
	}, func() string { return "" })
}

// budget keeps so many pods of a gang from being disrupted, once its controller has counted them.
func (l *lab) budget(g gang, least int) {
	l.t.Helper()
	minimum := intstr.FromInt32(int32(least))
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: g.namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": g.name}},
		},
	}
	budgets := l.Client().PolicyV1().PodDisruptionBudgets(g.namespace)
	if _, err := budgets.Create(l.t.Context(), b, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.until("the budget counts its pods", func() bool {
		now, err := budgets.Get(l.t.Context(), g.name, metav1.GetOptions{})
		return err == nil && now.Status.CurrentHealthy == int32(len(l.pods(g)))
	}, l.sight(g))
}

// TestLostKubelets: what is deleted while no kubelet answers stays there, and the gangs that want its place do without.
func TestLostKubelets(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.classes()
	ns := l.namespace("lost-kubelets")
	anywhere := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	l.nodes(ns, 1, 4)
	old := of(ns, "g", 2, 2, 1)
	l.create(old, 0, 2)
	l.runs(old, 2)
	other := l.namespace("lost-victims")
	l.nodes(other, 2, 1)
	low := gang{namespace: other, name: "low", gpus: 1}.priority("low")
	middle := gang{namespace: other, name: "middle", gpus: 1}.priority("middle")
	l.create(low, 0, 1)
	l.create(middle, 0, 1)
	l.runs(low, 1)
	l.runs(middle, 1)

	if err := l.Signal("kwok", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.drop(old)
	again := old
	again.with = anywhere
	l.create(again, 2, 3)
	l.reported(again, "gang lost-kubelets/g waits for its pods: 1 of at least 2 are there")
	l.stays(again, 2) // those that terminate
	l.create(again, 3, 4)
	l.runs(again, 4)

	g := of(other, "g", 1, 1, 1)
	g.with = func(p *corev1.Pod) { anywhere(p); p.Spec.PriorityClassName = "high" }
	l.create(g, 0, 1)
	deleted := func(g gang) func() bool {
		return func() bool { return l.pods(g)[0].DeletionTimestamp != nil }
	}
	l.until("the least important pod terminates", deleted(low), l.sight(g, low, middle))
	time.Sleep(stillness)
	if deleted(middle)() {
		t.Error("a second pod is evicted while the first may still go")
	}
	l.until("another is evicted in the place of the one that is stuck", deleted(middle), l.sight(g, low, middle))
	l.stays(g, 0)
	if err := l.Signal("kwok", syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.runs(g, 1)
}

// TestOutage stops the API server for a minute while a gang waits for room and another holds places. The scheduler that
// leads gives up its lease and ends, and is started again, as a kubelet does.
func TestOutage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if err := l.scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	leader := l.start("leader", edited(t))
	l.holder()
	ns := l.namespace("outage")
	l.nodes(ns, 1, 3)
	waiting := of(ns, "waiting", 4, 4, 1)
	l.create(waiting, 0, 4)
	l.reported(waiting, "needs 4 pods at once and has room for 3")
	other := l.namespace("held")
	l.nodes(other, 1, 1)
	held := of(other, "held", 2, 2, 1, gangcache.ModeKey, "NonStrict", gangcache.WaitingTime, "10m")
	l.create(held, 0, 2)
	l.until("one of two pods holds the one place", func() bool {
		return slices.ContainsFunc(l.pods(held), func(p *corev1.Pod) bool {
			return strings.Contains(scheduled(p), "Insufficient")
		})
	}, l.sight(held))

	if err := l.Signal("kube-apiserver", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if err := l.Signal("kube-apiserver", syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.until("the API answers", func() bool {
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		_, err := l.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil
	}, func() string { return "it does not" })
	select {
	case <-leader.Done():
		l.start("leader-again", edited(t))
	default:
		t.Log("the leader outlived the outage")
	}
	l.stays(waiting, 0)
	l.stays(held, 0)
	l.nodes(ns, 1, 1)
	l.nodes(other, 1, 1)
	l.runs(waiting, 4)
	l.runs(held, 2)
}
