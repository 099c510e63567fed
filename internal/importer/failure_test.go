package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestFailureRules: what a JobSet does on which failure becomes rules, fields of groups, or is told of.
func TestFailureRules(t *testing.T) {
	t.Parallel()
	const (
		set = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec:\n  failurePolicy: " +
			"{maxRestarts: %d, rules: [%s]}\n  replicatedJobs:\n%s%s"
		job = "  - {name: %s, template: {spec: {backoffLimit: 0%s, template: {spec: {restartPolicy: Never, " +
			"containers: [{name: c, image: 'a/b:1', command: [%s]}]}}}}}\n"
		onDisruption = ", podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]}"
		onCode       = ", podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}"
		uncounted    = "{action: RestartJobSetAndIgnoreMaxRestarts, onJobFailureReasons: [PodFailurePolicy]}"
	)
	for name, c := range map[string]struct {
		restarts    int
		rules       string
		lead, train string // what the Jobs have beside
		want, not   []string
	}{
		"a disruption of one group": {
			rules: uncounted, lead: onDisruption,
			want: []string{"ignoreDisruptions: true", "restartAll: uncounted"}, not: []string{"  rules:", "dropped"},
		},
		"a disruption that counts": {
			restarts: 2, lead: onDisruption, want: []string{"restartAll: 2", "podFailurePolicy.rules", "dropped"},
			not: []string{"ignoreDisruptions: true"},
		},
		"what a set does by itself": {
			restarts: 1, rules: "{action: RestartJobSet, targetReplicatedJobs: [lead]}",
			want: []string{"restartAll: 1"}, not: []string{"rules:", "dropped"},
		},
		"no restart but what a set does by itself": {
			rules: "{action: RestartJobSet}", not: []string{"rules:", "restartAll", "dropped"},
		},
		"no restart with rules that end it": {
			rules: "{action: FailJobSet, targetReplicatedJobs: [lead]}, {action: FailJobSet, " +
				"onJobFailureReasons: [DeadlineExceeded]}",
			want: []string{"spec.failurePolicy.rules[0]", "translated"},
			not:  []string{"restartAll", "then:", "dropped"},
		},
		"no restart that counts": {
			rules: "{action: RestartJobAndIgnoreMaxRestarts, targetReplicatedJobs: [lead]}",
			want:  []string{"restartAll: uncounted", "then: restartGroupUncounted"}, not: []string{"dropped"},
		},
		"by group": {
			restarts: 1, rules: "{action: FailJobSet, targetReplicatedJobs: [lead]}",
			want: []string{"groups:\n      - lead", "then: fail"}, not: []string{"dropped"},
		},
		"the group that trains is called worker": {
			restarts: 1, rules: "{action: RestartJob, targetReplicatedJobs: [train]}",
			want: []string{"groups:\n      - worker", "then: restartGroup"}, not: []string{"dropped"},
		},
		"a rule before one that follows from the Jobs": {
			restarts: 1, rules: "{action: FailJobSet, targetReplicatedJobs: [train]}, " + uncounted, lead: onDisruption,
			want: []string{"then: fail", "ignoreDisruptions: true"}, not: []string{"reasons:", "dropped"},
		},
		"a rule behind one that follows from the Jobs": {
			restarts: 1, rules: uncounted + ", {action: FailJobSet, targetReplicatedJobs: [lead]}", lead: onDisruption,
			want: []string{"reasons:\n      - PodFailurePolicy", "then: restartUncounted", "then: fail"},
			not:  []string{"dropped"},
		},
		"exit codes of a group": {
			restarts: 1, rules: "{action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}", lead: onCode,
			want: []string{"fatalExitCodes:\n      - 3"}, not: []string{"then:"},
		},
		"by message": {
			restarts: 1, rules: "{action: FailJobSet, onJobFailureMessagePatterns: [gone]}",
			want: []string{"spec.failurePolicy.rules", "dropped"}, not: []string{"then:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fmt.Sprintf(set, c.restarts, c.rules, fmt.Sprintf(job, "lead", c.lead, "lead"),
				fmt.Sprintf(job, "train", c.train, "torchrun, t.py"))
			out := importer.Jobs([]schema.Source{{Name: "x.yaml", Data: []byte(in)}})
			var all strings.Builder
			all.Write(out.YAML)
			for _, n := range out.Notes {
				fmt.Fprintln(&all, n)
			}
			for _, want := range c.want {
				if !strings.Contains(all.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, all.String())
				}
			}
			for _, not := range c.not {
				if strings.Contains(all.String(), not) {
					t.Errorf("%q is in:\n%s", not, all.String())
				}
			}
		})
	}
}
