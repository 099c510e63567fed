package diff

import (
	"strings"
	"testing"
)

// TestPodUpdate: what ValidatePodUpdate lets a pod change besides its image.
func TestPodUpdate(t *testing.T) {
	pod := func(more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: w, image: 'a:1'}], " +
			more + "}"
	}
	affinity := func(terms string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
			terms + "]}}}"
	}
	const a, b = "{key: a, operator: Exists}", "{key: b, operator: Exists}"
	one, two := "{matchExpressions: ["+a+"]}", "{matchExpressions: ["+a+", "+b+"]}"
	gated := func(more string) string { return pod("schedulingGates: [{name: g}], " + more) }
	seconds := func(n string) string {
		return pod("tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: " + n + "}]")
	}
	for _, c := range []struct {
		name, was, is string
		want          Class
	}{
		{"seconds", seconds("10"), seconds("99"), InPlace},
		{"another effect", seconds("10"), strings.Replace(seconds("10"), "NoExecute", "NoSchedule", 1), Refused},
		{"affinity of a gated pod", gated(""), gated(affinity(one)), InPlace},
		{"more of it", gated(affinity(one)), gated(affinity(two)), InPlace},
		{"less of it", gated(affinity(two)), gated(affinity(one)), Refused},
		{"another term", gated(affinity(one)), gated(affinity(one + ", " + two)), Refused},
		{"none left", gated(affinity(one)), gated(""), Refused},
		{"an empty term", gated(affinity("{}")), gated(affinity(one)), Refused},
		{"affinity of a pod without a gate", pod(""), pod(affinity(one)), Refused},
		{"of pods", gated(""), gated("affinity: {podAffinity: {x: y}}"), Refused},
	} {
		if r := compare(t, c.was, c.is); r.Worst != c.want {
			t.Errorf("%s: %q, want %q: %+v", c.name, r.Worst, c.want, r.Jobs)
		}
	}
}
