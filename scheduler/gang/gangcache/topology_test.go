package gangcache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayers(t *testing.T) {
	const zone = `{"gatherStrategy":[{"layer":"topology.kubernetes.io/zone","strategy":"MustGather"}]}`
	rule := func(layer, strategy string) string { return fmt.Sprintf(`{"layer":%q,"strategy":%q}`, layer, strategy) }
	of := func(rules ...string) string { return `{"gatherStrategy": [` + strings.Join(rules, ", ") + `]}` }
	const required, preferred = "MustGather", "PreferGather"
	for _, c := range []struct {
		reason, annotation string
		want               []Layer
		problem            string // a part of the error, "" for none
	}{
		{"required", zone, []Layer{{"topology.kubernetes.io/zone", true}}, ""},
		{
			"required and preferred, in their order", of(rule("rack", preferred), rule("zone", required)),
			[]Layer{{"rack", false}, {"zone", true}},
			"",
		},
		{"empty", "", nil, "it must be JSON such as"},
		{"no layer", `{"gatherStrategy":[]}`, nil, "it must be JSON such as"},
		{"a list", `[{"layer":"rack","strategy":"MustGather"}]`, nil, "it must be JSON such as"},
		{"two values", zone + zone, nil, "it must be JSON such as"},
		{"no name", of(rule("", required)), nil, "a layer is a label of nodes"},
		{"no strategy", of(`{"layer": "rack"}`), nil, "MustGather or PreferGather"},
		{"another strategy", of(rule("rack", "mustGather")), nil, "MustGather or PreferGather"},
		{
			"a rule that is not kept", of(`{"layer": "rack", "strategy": "MustGather", "podCountMultiple": 2}`), nil,
			"it must be JSON such as",
		},
		{"twice the same", of(rule("rack", required), rule("rack", preferred)), nil, "it has layer rack twice"},
		{
			"too many", of(
				rule("a", required), rule("b", required), rule("c", required), rule("d", required), rule("e", required),
			), nil, "at most 4 layers",
		},
		{"no label", of(rule(strings.Repeat("x", 318), required)), nil, "a layer is a label of nodes"},
	} {
		_, got, err := FromAnnotations("team", prefixed(map[string]string{
			Name: "g", MinMembers: "2", TopologyKey: c.annotation,
		}), byDefault)
		if diff := cmp.Diff(c.want, got.Layers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
		checkProblem(t, c.reason, err, c.problem)
		if err != nil && !strings.HasPrefix(err.Error(), "annotation "+Prefix+TopologyKey+" is ") {
			t.Errorf("%s: the error does not say which annotation: %v", c.reason, err)
		}
	}
}

func TestSliceOf(t *testing.T) {
	topology, index := Prefix+TopologyKey, "batch.kubernetes.io/job-completion-index"
	for _, c := range []struct {
		reason              string
		annotations, labels map[string]string
		want                Slice
		text                string
		problem             string // a part of the error, "" for none
	}{
		{reason: "no slices", annotations: map[string]string{topology: "{}"}, labels: map[string]string{index: "3"}},
		{
			reason:      "by the label of a Job's pod",
			annotations: map[string]string{topology: "{}", SliceKey: "4"}, labels: map[string]string{index: "7"},
			want: Slice{"job", 2}, text: "slice 1 of job",
		},
		{
			reason:      "by its annotation, which old Jobs have alone",
			annotations: map[string]string{topology: "{}", SliceKey: "4", index: "3"},
			want:        Slice{"job", 1}, text: "slice 0 of job",
		},
		{
			reason:      "by the rank that says so itself",
			annotations: map[string]string{topology: "{}", SliceKey: "4", Prefix + RankKey: "8"},
			labels:      map[string]string{index: "1"}, want: Slice{"job", 3}, text: "slice 2 of job",
		},
		{
			reason: "without a topology", annotations: map[string]string{SliceKey: "4", index: "3"},
			problem: "annotation gang.tegen.dev/topology-slice needs " + topology,
		},
		{
			reason: "without a rank", annotations: map[string]string{topology: "{}", SliceKey: "4"},
			problem: "needs the pod's rank, from 0",
		},
		{
			reason:      "with a rank below 0",
			annotations: map[string]string{topology: "{}", SliceKey: "4", index: "-1"}, problem: "needs the pod's rank",
		},
		{
			reason: "of no pods", annotations: map[string]string{topology: "{}", SliceKey: "0", index: "3"},
			problem: "must be a number from 1 to 100000",
		},
		{
			reason: "of too many", annotations: map[string]string{topology: "{}", SliceKey: "100001", index: "3"},
			problem: "must be a number from 1 to 100000",
		},
		{
			reason: "of a word", annotations: map[string]string{topology: "{}", SliceKey: "four", index: "3"},
			problem: "must be a number from 1 to 100000",
		},
	} {
		got, err := SliceOf(c.annotations, c.labels, "job")
		if got != c.want || got.String() != c.text {
			t.Errorf("%s: %+v, %q; want %+v, %q", c.reason, got, got, c.want, c.text)
		}
		checkProblem(t, c.reason, err, c.problem)
	}
}

func checkProblem(t *testing.T, reason string, err error, problem string) {
	t.Helper()
	if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
		t.Errorf("%s: error %v, want one with %q", reason, err, problem)
	}
}
