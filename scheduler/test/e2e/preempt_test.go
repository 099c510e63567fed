package scheduling

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// classes are the PriorityClasses of the stories, from the least important.
var classes = []string{"low", "middle", "high"}

func (l *lab) classes() {
	l.t.Helper()
	for i, name := range classes {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(100 * (i + 1))}
		if _, err := l.Client().SchedulingV1().PriorityClasses().Create(l.t.Context(), c,
			metav1.CreateOptions{}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// priority puts the pods of a gang into a class.
func (g gang) priority(class string) gang {
	g.with = func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
	return g
}

// testPreemption: room is made by evicting pods of lower priority, of a gang what it can spare or the whole.
func testPreemption(l *lab) {
	l.classes()

	l.story("spare", func(l *lab, ns string) {
		l.nodes(ns, 1, 3)
		victim := of(ns, "victim", 3, 2, 1).priority("low")
		l.create(victim, 0, 3)
		l.runs(victim, 3)
		single := gang{namespace: ns, name: "single", gpus: 1}.priority("high")
		l.create(single, 0, 1)
		l.runs(single, 1)
		l.stays(victim, 2)
	})

	l.story("whole", func(l *lab, ns string) {
		l.nodes(ns, 2, 1)
		victim := of(ns, "victim", 2, 2, 1).priority("low")
		l.create(victim, 0, 2)
		l.runs(victim, 2)
		single := gang{namespace: ns, name: "single", gpus: 1}.priority("high")
		l.create(single, 0, 1)
		l.runs(single, 1)
		l.stays(victim, 0) // one of its pods would be a gang below its minimum
	})

	l.story("for-a-gang", func(l *lab, ns string) {
		l.nodes(ns, 4, 1)
		low := gang{namespace: ns, name: "low", gpus: 1}.priority("low")
		middle := gang{namespace: ns, name: "middle", gpus: 1}.priority("middle")
		l.create(low, 0, 3)
		l.create(middle, 0, 1)
		l.runs(low, 3)
		l.runs(middle, 1)
		g := of(ns, "g", 3, 3, 1).priority("high")
		l.create(g, 0, 3)
		l.runs(g, 3)
		l.stays(middle, 1) // the least important were enough
	})

	l.story("in-vain", func(l *lab, ns string) {
		l.nodes(ns, 2, 1)
		low := gang{namespace: ns, name: "low", gpus: 1}.priority("low")
		l.create(low, 0, 2)
		l.runs(low, 2)
		g := of(ns, "g", 3, 3, 1).priority("high")
		l.create(g, 0, 3)
		l.reported(g, "needs 3 pods at once")
		l.stays(low, 2) // nothing is evicted for a gang that would not fit even then
	})

	l.story("room-made-in-one-rack", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 2)
		l.rack(ns, "b", 1, 2)
		low := gang{namespace: ns, name: "low", gpus: 1}.priority("low")
		l.create(low, 0, 4)
		l.runs(low, 4)
		g := of(ns, "g", 2, 2, 1, gangcache.TopologyKey, mustGather).priority("high")
		l.create(g, 0, 2)
		l.until("the gang runs", func() bool { return len(l.bound(g)) == 2 }, l.sight(g, low))
		if got := l.racks(g); got != "2 in a" && got != "2 in b" {
			l.t.Errorf("the gang has %s", got)
		}
		l.stays(low, 2)
	})

	l.story("gang-for-gang", func(l *lab, ns string) {
		l.nodes(ns, 2, 4)
		var small []gang
		for i := range 4 {
			g := of(ns, fmt.Sprintf("small-%c", 'a'+i), 2, 2, 1).priority("low")
			l.create(g, 0, 2)
			l.runs(g, 2)
			small = append(small, g)
		}
		big := of(ns, "big", 3, 3, 1).priority("high")
		l.create(big, 0, 3)
		l.runs(big, 3)
		left := 0
		for _, g := range small {
			switch n := len(l.bound(g)); n {
			case 0:
			case 2:
				left++
			default:
				l.t.Errorf("gang %s is left with %d pods", g.name, n)
			}
		}
		if left != 2 {
			l.t.Errorf("%d of 4 gangs are left: two had to go for 3 GPUs", left)
		}
	})
	l.story("guarded-elsewhere", func(l *lab, ns string) {
		l.nodes(ns, 2, 1)
		guarded := gang{namespace: ns, name: "guarded", gpus: 1}.priority("low")
		free := gang{namespace: ns, name: "free", gpus: 1}.priority("middle")
		l.create(guarded, 0, 1)
		l.create(free, 0, 1)
		l.runs(guarded, 1)
		l.runs(free, 1)
		l.budget(guarded, 1)
		g := of(ns, "g", 1, 1, 1).priority("high")
		l.create(g, 0, 1)
		l.runs(g, 1)
		l.stays(guarded, 1) // of lower priority, but its budget allows no disruption
		l.gone(free, 0)
	})

	l.story("mixed-priority", func(l *lab, ns string) {
		l.nodes(ns, 1, 2)
		middle := gang{namespace: ns, name: "middle", gpus: 2}.priority("middle")
		l.create(middle, 0, 1)
		l.runs(middle, 1)
		g := of(ns, "g", 2, 2, 1)
		g.with = func(p *corev1.Pod) {
			p.Spec.PriorityClassName = map[string]string{"g-0": "high", "g-1": "low"}[p.Name]
		}
		l.create(g, 0, 2)
		l.until("an event names the member that limits the gang", func() bool {
			return slices.ContainsFunc(l.events(ns), func(e string) bool {
				return strings.Contains(e, "lower priority than 100, which is that of member g-1")
			})
		}, l.sight(g))
		l.stays(middle, 1)
	})

	l.story("evicted-by-another", func(l *lab, ns string) {
		l.startKubeScheduler()
		l.nodes(ns, 2, 1)
		g := of(ns, "g", 2, 2, 1).priority("low")
		l.create(g, 0, 2)
		l.runs(g, 2)
		other := gang{namespace: ns, name: "other", gpus: 1, scheduler: "default-scheduler"}.priority("high")
		l.create(other, 0, 1)
		l.runs(other, 1)
		// kube-scheduler knows of no gang, and evicts one of its pods, or both: it may look again before it has seen
		// that the first is gone.
		lost := 0
		l.until("pods of g are evicted", func() bool {
			left := l.pods(g)
			lost = 2 - len(left)
			leaving := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }
			return lost > 0 && !slices.ContainsFunc(left, leaving)
		}, l.sight(g))
		l.create(g, 2, 2+lost)
		l.reported(g, "Insufficient")
		l.nodes(ns, 1, 1)
		l.runs(g, 2)
	})
}

// startKubeScheduler starts the stock scheduler beside the lab's.
func (l *lab) startKubeScheduler() {
	l.t.Helper()
	program, err := cluster.Program(l.t.Context(), os.Stderr, "kube-scheduler")
	if err != nil {
		l.t.Fatal(err)
	}
	port, err := cluster.FreePort()
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.Run(l.t.Context(), "kube-scheduler", program, "--kubeconfig", l.Kubeconfig(), "--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir",
		filepath.Join(l.Dir(), "kube-scheduler-certs"), "--authentication-kubeconfig", l.Kubeconfig(),
		"--authorization-kubeconfig", l.Kubeconfig()); err != nil {
		l.t.Fatal(err)
	}
}
