package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// racked is a node of two or eight GPUs in a rack.
func racked(name, rack string, gpus int) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {example.com/rack: %s}}, status: "+
		"{allocatable: {cpu: 32, memory: 256Gi, ephemeral-storage: 900Gi, nvidia.com/gpu: %d, pods: 110}}}", name, rack,
		gpus)
}

const inRack = single + "workers: {replicas: 4}, gang: {scheduler: tegen, topology: {level: example.com/rack%s}}"

// TestFitTopology: which domain holds a gang, or its slices, and what the others lack.
func TestFitTopology(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		nodes []string
		want  []string
	}{
		"the domain with least room that holds all": {
			fmt.Sprintf(inRack, ""),
			[]string{racked("a", "r1", 2), racked("b", "r2", 8), racked("c", "r3", 4)},
			[]string{
				"fits true", "c: j-worker-{0..3}-*", "r1 2 0 [{1 insufficient nvidia.com/gpu}]", "r2 8 0 []",
				"r3 4 4 []",
			},
		},
		"no domain, though there is room": {
			fmt.Sprintf(inRack, ""),
			[]string{racked("a", "r1", 2), racked("b", "r2", 2), gpuNode("c", "")},
			[]string{
				"fits false", "4 of worker: 3 no domain of example.com/rack has room for all workers",
				"r1 2 0 [{1 insufficient nvidia.com/gpu}]", "r2 2 0 [{1 insufficient nvidia.com/gpu}]",
			},
		},
		"preferred takes several": {
			fmt.Sprintf(inRack, ", mode: preferred"),
			[]string{racked("a", "r1", 2), racked("b", "r2", 2)},
			[]string{
				"fits true", "a: j-worker-{0..1}-*", "b: j-worker-{2..3}-*", "r1 2 2 [{1 insufficient nvidia.com/gpu}]",
				"r2 2 2 [{1 insufficient nvidia.com/gpu}]",
			},
		},
		"whole slices": {
			fmt.Sprintf(inRack, ", slice: 2"),
			[]string{racked("a", "r1", 3), racked("b", "r2", 2), racked("c", "r3", 1)},
			[]string{
				"fits true", "a: j-worker-{0..1}-*", "b: j-worker-{2..3}-*", "r1 3 2 [{1 insufficient nvidia.com/gpu}]",
				"r2 2 2 [{1 insufficient nvidia.com/gpu}]", "r3 1 0 [{1 insufficient nvidia.com/gpu}]",
			},
		},
		"room for all, but for no two slices": {
			fmt.Sprintf(inRack, ", slice: 2"),
			[]string{racked("a", "r1", 3), racked("b", "r2", 1)},
			[]string{
				"fits false", "a: j-worker-{0..1}-*",
				"2 of worker: 2 no domain of example.com/rack has room for one more slice",
				"r1 3 2 [{1 insufficient nvidia.com/gpu}]", "r2 1 0 [{1 insufficient nvidia.com/gpu}]",
			},
		},
		"one that runs keeps the others in its domain": {
			fmt.Sprintf(inRack, ""),
			[]string{racked("a", "r1", 8), racked("b", "r2", 3), pod("j-worker-0-xxxxx", "b", "1", "")},
			[]string{"fits true", "b: j-worker-{1..3}-*", "b has: j-worker-0-*", "r1 8 0 []", "r2 3 4 []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := of(t, c.spec)
			inv := inventory(t, c.nodes...)
			New([]*Job{j}).Fit(inv)
			got := placed(j.Fit)
			for _, d := range j.Fit.Domains {
				got = append(got, fmt.Sprint(d.Name, " ", d.Room, " ", d.Placed, " ", d.Reasons))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
