package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// testGangs tells stories of gangs, each in a namespace and on nodes of its own.
func testGangs(l *lab) {
	l.story("literal", func(l *lab, ns string) {
		l.nodes(ns, 2, 1)
		whole := of(ns, "whole", 4, 4, 1)
		l.create(whole, 0, 4)
		l.reported(whole, "gang literal/whole needs 4 pods at once and has room for 2", "2 Insufficient nvidia.com/gpu")
		l.stays(whole, 0)
		l.drop(whole)

		part := of(ns, "part", 4, 2, 1)
		l.create(part, 0, 4)
		l.runs(part, 2)
		l.nodes(ns, 2, 1)
		l.runs(part, 4)
	})

	l.story("elastic", func(l *lab, ns string) {
		l.nodes(ns, 1, 2)
		g := of(ns, "g", 6, 3, 1, gangcache.TotalNumber, "3", gangcache.MatchPolicy, "waiting-and-running")
		l.create(g, 0, 4)
		l.reported(g, "gang elastic/g needs 3 pods at once and has room for 2")
		l.stays(g, 0)
		l.nodes(ns, 1, 2)
		l.runs(g, 4)
		l.create(g, 4, 6) // more than the gang was said to have, and no room for them
		l.stays(g, 4)
		l.nodes(ns, 1, 2)
		l.runs(g, 6)
		l.delete(ns, "g-3", "g-4", "g-5")
		l.gone(g, 3)
		l.stays(g, 3)
	})

	l.story("two-gangs", func(l *lab, ns string) {
		l.nodes(ns, 3, 4)
		first, second := of(ns, "first", 8, 8, 1), of(ns, "second", 8, 8, 1)
		for i := range 8 { // as controllers create them: one of each in turn
			l.create(first, i, i+1)
			l.create(second, i, i+1)
		}
		l.until("one of the gangs runs", func() bool {
			a, b := len(l.bound(first)), len(l.bound(second))
			return a+b == 8 && (a == 0 || b == 0)
		}, l.sight(first, second))
		if len(l.bound(first)) == 0 {
			first, second = second, first
		}
		// The other holds nothing: what it does not get, a pod without a gang gets at once.
		single := gang{namespace: ns, name: "single", gpus: 4}
		l.create(single, 0, 1)
		l.runs(single, 1)
		l.stays(second, 0)
		l.drop(first)
		l.runs(second, 8)
	})

	l.story("rejoins", func(l *lab, ns string) {
		l.nodes(ns, 1, 4)
		for _, policy := range []string{"once-satisfied", "waiting-and-running"} {
			g := of(ns, policy, 2, 2, 1, gangcache.MatchPolicy, policy)
			l.create(g, 0, 2)
			l.runs(g, 2)
			l.delete(ns, policy+"-0")
			l.gone(g, 1)
			l.create(g, 2, 3) // under a name of its own, as a Job's: KWOK may delete a name twice
			l.runs(g, 2)
		}
	})

	l.story("finishing", func(l *lab, ns string) {
		l.nodes(ns, 1, 4)
		g := of(ns, "g", 3, 3, 1, gangcache.MatchPolicy, "waiting-and-running")
		l.create(g, 0, 3)
		l.runs(g, 3)
		l.finish(ns, "g-0")
		l.delete(ns, "g-1")
		l.gone(g, 2)
		l.create(g, 3, 4)
		l.runs(g, 3) // what has succeeded counts
	})

	l.story("only-waiting", func(l *lab, ns string) {
		l.nodes(ns, 1, 4)
		g := of(ns, "g", 2, 2, 1, gangcache.MatchPolicy, "only-waiting")
		l.create(g, 0, 2)
		l.runs(g, 2)
		l.delete(ns, "g-0")
		l.gone(g, 1)
		l.create(g, 2, 3)
		l.reported(g, "gang only-waiting/g waits for its pods: 1 of at least 2 are there")
		l.stays(g, 1)
	})

	l.story("gathering", func(l *lab, ns string) {
		l.nodes(ns, 1, 4)
		g := of(ns, "g", 4, 4, 1)
		l.create(g, 0, 3)
		l.reported(g, "gang gathering/g waits for its pods: 3 of at least 4 are there")
		l.create(g, 3, 4)
		l.runs(g, 4)
	})

	l.story("not-strict", func(l *lab, ns string) {
		l.nodes(ns, 1, 2)
		g := of(ns, "g", 3, 3, 1, gangcache.ModeKey, "NonStrict", gangcache.WaitingTime, "5s")
		l.create(g, 0, 3)
		single := gang{namespace: ns, name: "single", gpus: 2}
		l.until("the gang tries", func() bool { return len(l.events(ns)) > 0 }, l.sight(g))
		l.create(single, 0, 1)
		l.runs(single, 1) // once the gang's time is over
		l.stays(g, 0)
		l.nodes(ns, 1, 3)
		l.runs(g, 3)
	})

	l.story("groups", func(l *lab, ns string) {
		l.nodes(ns, 1, 3)
		list := fmt.Sprintf(`["%s/a","%s/b"]`, ns, ns)
		a, b := of(ns, "a", 2, 2, 1, gangcache.GroupsKey, list), of(ns, "b", 2, 2, 1, gangcache.GroupsKey, list)
		l.create(a, 0, 2)
		l.reported(a, "gang groups/a waits for gang groups/b of its group, which has no pods")
		l.create(b, 0, 2)
		l.reported(b, "needs 2 pods at once")
		l.stays(a, 0)
		l.stays(b, 0)
		l.nodes(ns, 1, 1)
		l.runs(a, 2)
		l.runs(b, 2)
	})

	l.story("two-shapes", func(l *lab, ns string) {
		// The big pod fits one node only, which the small ones would take if they came first.
		l.nodes(ns, 1, 4)
		l.nodes(ns, 2, 1)
		g := of(ns, "g", 3, 3, 1)
		g.with = func(p *corev1.Pod) {
			if p.Name == "g-2" {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{cluster.GPU: quantity("4")}
			}
		}
		l.create(g, 0, 2)
		l.create(g, 2, 3)
		l.runs(g, 3)
	})

	l.story("taints", func(l *lab, ns string) {
		l.nodes(ns, 1, 1)
		l.nodes(ns, 1, 1, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
		g := of(ns, "g", 2, 2, 1)
		l.create(g, 0, 2)
		l.reported(g, "has room for 1", "had untolerated taint")
		l.stays(g, 0)
		l.drop(g)
		g.name = "tolerant"
		g.annotations[gangcache.Name] = g.name
		g.with = func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists}}
		}
		l.create(g, 0, 2)
		l.runs(g, 2)
	})

	l.story("spread", func(l *lab, ns string) {
		nodes := l.nodes(ns, 2, 8)
		g := of(ns, "g", 3, 3, 1)
		g.with = func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"gang": "g"},
					},
				}},
			}}
		}
		l.create(g, 0, 3)
		l.reported(g, "has room for 2", "anti-affinity")
		l.stays(g, 0)
		more := l.nodes(ns, 1, 8)
		l.runs(g, 3)
		on := map[string]bool{}
		for _, p := range l.pods(g) {
			on[p.Spec.NodeName] = true
		}
		if len(on) != len(nodes)+len(more) {
			l.t.Errorf("pods that keep apart are on %v", on)
		}
	})
}

// testMalformed: what a gang declares badly is said to every pod of it, none is placed, and pods beside it are.
func testMalformed(l *lab) {
	l.prefix = "malformed-"
	for name, c := range map[string]struct {
		key, value, says string
	}{
		"word":          {gangcache.MinMembers, "four", "it must be a number from 1 to 100000"},
		"above-total":   {gangcache.TotalNumber, "1", "it must not be below min-available, 2"},
		"negative":      {gangcache.MinMembers, "-1", "it must be a number from 1 to 100000"},
		"empty":         {gangcache.MinMembers, "", "it must be a number from 1 to 100000"},
		"huge":          {gangcache.MinMembers, "1000000000", "it must be a number from 1 to 100000"},
		"nameless":      {gangcache.Name, "", "a gang needs a name that its pods share"},
		"mode":          {gangcache.ModeKey, "strict", "it must be one of Strict, NonStrict"},
		"groups":        {gangcache.GroupsKey, "a,b", "it must be a JSON list of namespace/name"},
		"waiting-time":  {gangcache.WaitingTime, "forever", "it must be a positive duration"},
		"match-policy":  {gangcache.MatchPolicy, "any", "it must be one of once-satisfied"},
		"one-bad-among": {"", "", "pod g-1: annotation gang.scheduling.koordinator.sh/mode"},
	} {
		l.story(name, func(l *lab, ns string) {
			l.nodes(ns, 1, 8)
			g := of(ns, "g", 2, 2, 1)
			if c.key != "" {
				g.annotations[c.key] = c.value
			} else {
				g.with = func(p *corev1.Pod) {
					if p.Name == "g-1" {
						p.Annotations[gangcache.Prefix+gangcache.ModeKey] = "lax"
					}
				}
			}
			l.create(g, 0, 2)
			l.reported(g, "is not placed", c.says)
			beside := of(ns, "beside", 2, 2, 1)
			l.create(beside, 0, 2)
			l.runs(beside, 2)
			l.stays(g, 0)
		})
	}
}
