package scheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha2", Resource: "podgroups"}

// native is a gang whose pods name a PodGroup.
func native(namespace, name string, pods int) gang {
	g := gang{namespace: namespace, name: name, pods: pods, gpus: 1}
	g.with = func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g.name} }
	return g
}

// podGroup makes a PodGroup with a minimum, whose pods must gather in domains of some labels.
func (l *lab) podGroup(namespace, name string, minimum int64, gathers ...string) {
	l.t.Helper()
	var topology []any
	for _, label := range gathers {
		topology = append(topology, map[string]any{"key": label})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podGroups.GroupVersion().String(), "kind": "PodGroup", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"schedulingPolicy":      map[string]any{"gang": map[string]any{"minCount": minimum}},
			"schedulingConstraints": map[string]any{"topology": topology},
		},
	}}
	if _, err := l.Dynamic().Resource(podGroups).Namespace(namespace).Create(l.t.Context(), u,
		metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// conditionIs waits until a PodGroup's condition PodGroupScheduled has a status and a message with a word.
func (l *lab) conditionIs(namespace, name, status, word string) {
	l.t.Helper()
	var conditions []any
	l.until(fmt.Sprintf("condition of PodGroup %s is %s", name, status), func() bool {
		u, err := l.Dynamic().Resource(podGroups).Namespace(namespace).Get(l.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		conditions, _, _ = unstructured.NestedSlice(u.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			m, _ := c.(map[string]any)
			return m["type"] == "PodGroupScheduled" && m["status"] == status &&
				strings.Contains(fmt.Sprint(m["message"]), word)
		})
	}, func() string { return fmt.Sprint(conditions) })
}

// TestNative: PodGroups of the cluster's own API are gangs too, whether or not kube-scheduler's gates are on.
func TestNative(t *testing.T) {
	t.Parallel()
	l := newLab(t, "--gate=GenericWorkload=true", "--gate=TopologyAwareWorkloadScheduling=true",
		"--api="+podGroups.GroupVersion().String())

	l.story("native", func(l *lab, ns string) {
		l.nodes(ns, 2, 1)
		g := native(ns, "g", 4)
		l.create(g, 0, 4)
		l.reported(g, "is not placed: there is no PodGroup native/g")
		l.podGroup(ns, "g", 4)
		l.reported(g, "gang native/g needs 4 pods at once and has room for 2")
		l.conditionIs(ns, "g", "False", "has room for 2")
		l.stays(g, 0)
		l.nodes(ns, 2, 1)
		l.runs(g, 4)
		l.conditionIs(ns, "g", "True", "")
		l.finish(ns, "g-1")
		l.delete(ns, "g-0")
		l.gone(g, 3)
		l.create(g, 4, 5)
		l.runs(g, 4)
	})

	l.story("native-topology", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 2)
		l.rack(ns, "b", 1, 1)
		l.podGroup(ns, "g", 3, cluster.RackLabel)
		g := native(ns, "g", 3)
		l.create(g, 0, 3)
		l.reported(g, "needs 3 pods at once in one domain of example.com/rack and has room for 2 in "+
			"native-topology-a")
		l.conditionIs(ns, "g", "False", "has room for 2 in native-topology-a")
		l.stays(g, 0)
		l.rack(ns, "b", 1, 2)
		l.gathered(g, "3 in b")
	})

	l.story("native-minimum", func(l *lab, ns string) {
		l.nodes(ns, 1, 2)
		l.podGroup(ns, "g", 2)
		g := native(ns, "g", 3)
		l.create(g, 0, 3)
		l.runs(g, 2)
		l.nodes(ns, 1, 1)
		l.runs(g, 3)
	})
}
