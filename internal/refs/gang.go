package refs

import "strings"

// podGroups are the keys by which pods join a PodGroup, and which group's.
var podGroups = []struct {
	key   string
	label bool // or an annotation
	kind  string
}{
	{"scheduling.x-k8s.io/pod-group", true, "PodGroup.scheduling.x-k8s.io"},
	{"pod-group.scheduling.sigs.k8s.io", true, "PodGroup.scheduling.sigs.k8s.io"},
	{"scheduling.k8s.io/group-name", false, "PodGroup.scheduling.volcano.sh"},
	{"scheduling.volcano.sh/group-name", false, "PodGroup.scheduling.volcano.sh"},
}

// podGroup requires the PodGroup that pods say they belong to: without it their scheduler leaves them pending.
func (c *checker) podGroup(w *workload) {
	metadata := strings.TrimSuffix(w.path, "spec") + "metadata"
	for _, g := range podGroups {
		name, list := w.pod.Annotations[g.key], "annotations"
		if g.label {
			name, list = w.pod.Labels[g.key], "labels"
		}
		if to := (id{g.kind, w.namespace, name}); name != "" {
			c.member(w, place{path: metadata, list: list, name: g.key}, to)
		}
	}
	if g := w.spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		at := place{path: w.path + ".schedulingGroup.podGroupName"}
		c.member(w, at, id{"PodGroup", w.namespace, *g.PodGroupName})
	}
}

func (c *checker) member(w *workload, at place, group id) {
	c.link(&w.object, group, Joins, "")
	if !c.has(group) {
		c.missing(&w.object, at, group, "without it the pods stay pending")
	}
}
