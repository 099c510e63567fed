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
	const consequence = "without it the pods stay pending"
	metadata := strings.TrimSuffix(w.path, "spec") + "metadata"
	for _, g := range podGroups {
		name, list := w.pod.Annotations[g.key], "annotations"
		if g.label {
			name, list = w.pod.Labels[g.key], "labels"
		}
		if to := (id{g.kind, w.namespace, name}); name != "" && !c.has(to) {
			c.missing(&w.object, place{path: metadata, list: list, name: g.key}, to, consequence)
		}
	}
	if g := w.spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		if to := (id{"PodGroup", w.namespace, *g.PodGroupName}); !c.has(to) {
			c.missing(&w.object, place{path: w.path + ".schedulingGroup.podGroupName"}, to, consequence)
		}
	}
}
