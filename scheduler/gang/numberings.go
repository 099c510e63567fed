package gang

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// numberings are the labels that controllers number the pods of a set by.
var numberings = []string{
	"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name",
	"training.kubeflow.org/replica-index", "volcano.sh/task-index", "leaderworkerset.sigs.k8s.io/worker-index",
}

// unselected are the numberings that a dry run overlooks: no filter reads them, as they are in no term of the pods that
// are wanted, and in no anti-affinity of a pod that has a node or is nominated for one.
func (sim *simulation) unselected(wanted []*corev1.Pod) ([]string, error) {
	nodes, err := sim.fw.SnapshotSharedLister().NodeInfos().HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	out := slices.Clone(numberings)
	selected := func(keys ...string) {
		out = slices.DeleteFunc(out, func(n string) bool { return slices.Contains(keys, n) })
	}
	for _, n := range nodes {
		for _, info := range n.GetPodsWithRequiredAntiAffinity() {
			antiAffinityKeys(info, selected)
		}
	}
	for _, info := range sim.nominated {
		antiAffinityKeys(info, selected)
	}
	for i, pod := range wanted {
		if i == 0 || !sameTerms(&pod.Spec, &wanted[i-1].Spec) {
			termKeys(&pod.Spec, selected)
		}
	}
	return out, nil
}

// antiAffinityKeys calls a function with each label by which a pod keeps others away.
func antiAffinityKeys(info fwk.PodInfo, with func(keys ...string)) {
	for _, term := range info.GetRequiredAntiAffinityTerms() {
		requirements, _ := term.Selector.Requirements()
		for _, r := range requirements {
			with(r.Key())
		}
	}
}

// sameTerms says whether what selects pods in two specs is alike.
func sameTerms(a, b *corev1.PodSpec) bool {
	return sameBehind(a.Affinity, b.Affinity) && sameList(a.TopologySpreadConstraints, b.TopologySpreadConstraints)
}

// termKeys calls a function with each label by which a pod is near others, away from them or spread among them.
func termKeys(spec *corev1.PodSpec, with func(keys ...string)) {
	for _, c := range spec.TopologySpreadConstraints {
		selectorKeys(c.LabelSelector, with)
		with(c.MatchLabelKeys...)
	}
	if spec.Affinity == nil {
		return
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a := spec.Affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	for _, t := range terms {
		selectorKeys(t.LabelSelector, with)
		with(t.MatchLabelKeys...)
		with(t.MismatchLabelKeys...)
	}
}

func selectorKeys(s *metav1.LabelSelector, with func(keys ...string)) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		with(key)
	}
	for _, e := range s.MatchExpressions {
		with(e.Key)
	}
}
