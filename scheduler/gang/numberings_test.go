package gang

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestNumberings: a label that numbers pods tells them apart where a filter may read it, and nowhere else.
func TestNumberings(t *testing.T) {
	by := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: metav1.LabelSelectorOpExists},
		}}
	}
	spread := func(c corev1.TopologySpreadConstraint) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c} }
	}
	near := func(term corev1.PodAffinityTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
			}}
		}
	}
	rather := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: by(index)}},
			},
		}}
	}
	for _, tt := range []struct {
		reason              string
		member, other, room func(*corev1.Pod) // a member of the gang, a pod with a node, one that is nominated
		want                bool              // the index is read
	}{
		{reason: "no term"},
		{reason: "other labels", member: near(corev1.PodAffinityTerm{LabelSelector: by("app")})},
		{reason: "no selector", member: near(corev1.PodAffinityTerm{})},
		{reason: "an expression", member: near(corev1.PodAffinityTerm{LabelSelector: by(index)}), want: true},
		{reason: "equality", member: shunsIndex(0), want: true},
		{reason: "what is preferred", member: rather, want: true},
		{reason: "a spread", member: spread(corev1.TopologySpreadConstraint{LabelSelector: by(index)}), want: true},
		{reason: "a spread among the like", member: spread(corev1.TopologySpreadConstraint{
			MatchLabelKeys: []string{"app", index},
		}), want: true},
		{reason: "the like", member: near(corev1.PodAffinityTerm{MatchLabelKeys: []string{index}}), want: true},
		{reason: "the unlike", member: near(corev1.PodAffinityTerm{MismatchLabelKeys: []string{index}}), want: true},
		{reason: "others that must be apart", other: shunsIndex(0), want: true},
		{reason: "others that must be apart from something else", other: shuns},
		{reason: "others that must be near", other: near(corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: by(index),
		})},
		{reason: "others that would be apart", other: rather},
		{reason: "others for which room is kept", room: shunsIndex(0), want: true},
	} {
		pod := func(name, node string, with func(*corev1.Pod)) *corev1.Pod {
			p := worker(name, "", 0, 1, node, 100)
			if with != nil {
				with(p)
			}
			return p
		}
		g := newPlugin(t, []*corev1.Node{machine("x", 8)}, []*corev1.Pod{pod("other", "x", tt.other)})
		info, err := framework.NewPodInfo(pod("room", "", tt.room))
		if err != nil {
			t.Fatal(err)
		}
		g.shared.nominated["room"] = nomination{info: info, node: "x"}
		sim, err := g.newSimulation()
		if err != nil {
			t.Fatal(err)
		}
		left, err := sim.unselected([]*corev1.Pod{pod("first", "", nil), pod("second", "", tt.member)})
		if err != nil {
			t.Fatal(err)
		}
		if got := !slices.Contains(left, index); got != tt.want {
			t.Errorf("%s: the index is read: %t, want %t", tt.reason, got, tt.want)
		}
		if want := len(numberings); len(left) != want && len(left) != want-1 {
			t.Errorf("%s: %s", tt.reason, fmt.Sprint(left))
		}
	}
}
