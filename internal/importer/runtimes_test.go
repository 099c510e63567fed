package importer_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// runtimeOf is a TrainJob on a runtime of a policy, with further fields of its JobSet and the Jobs in that.
func runtimeOf(policy, set string, jobs ...string) string {
	return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: {runtimeRef: " +
		"{name: r}, trainer: {numNodes: 2}}\n---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: " +
		"ClusterTrainingRuntime\nmetadata: {name: r}\nspec: {mlPolicy: {numNodes: 1, " + policy + "}, template: " +
		"{spec: {" + set + "replicatedJobs: [" + strings.Join(jobs, ", ") + "]}}}\n"
}

func jobOfRuntime(name, fields, program string) string {
	return "{name: " + name + ", " + fields + "template: {spec: {template: {spec: {containers: [{name: node, image: " +
		"'a/b:1', command: [" + program + "]}]}}}}}"
}

// onRuntime is a TrainJob on a runtime that the input does not hold, with further fields.
func onRuntime(ref, fields string) string {
	return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: {runtimeRef: {" +
		ref + "}, " + fields + "trainer: {image: 'a/b:1', command: [python, t.py], numNodes: 2}}\n"
}

// TestRuntimesNotKept: no job is made of a TrainJob whose runtime runs something that a TrainingJob would not, and each
// place of the runtime that is so has a line.
func TestRuntimesNotKept(t *testing.T) {
	t.Parallel()
	node := jobOfRuntime("node", "", "torchrun, t.py")
	for name, c := range map[string]struct {
		in    string
		lines []string
	}{
		"mpi": {
			runtimeOf("mpi: {mpiImplementation: OpenMPI}", "", jobOfRuntime("node", "", "/usr/sbin/sshd, -De"),
				jobOfRuntime("launcher", "dependsOn: [{name: node, status: Ready}], ", "mpirun, t.py")),
			[]string{
				`TrainingRuntime r: spec\.mlPolicy\.mpi: .*: refused: Trainer creates ssh keys .* TrainJob j is not`,
				`replicatedJobs\[1\]\.name: "launcher": refused: the runtime starts these pods beside those of node`,
			},
		},
		"xgboost":          {runtimeOf("xgboost: {}", "", node), []string{`mlPolicy\.xgboost: {}: refused: .*DMLC_`}},
		"flux":             {runtimeOf("flux: {}", "", node), []string{`mlPolicy\.flux: {}: refused: .*Flux`}},
		"a policy of 2030": {runtimeOf("acme: {}", "", node), []string{`mlPolicy\.acme: {}: refused: Trainer sets up`}},
		"torchtune": {runtimeOf("torch: {}", "", jobOfRuntime("node", "", "tune, run, "+
			"x")), []string{`'tune run'`}},
		"Jobs of a template": {
			runtimeOf("torch: {}", "", jobOfRuntime("node", "replicas: 2, ", "t")), []string{`2: refused`},
		},
		"claims of the set": {
			runtimeOf("torch: {}", "volumeClaimPolicies: [{templates: [{metadata: {name: v}}]}], ", node),
			[]string{`volumeClaimPolicies: .*refused: JobSet creates these claims`},
		},
		"a download before": {
			onRuntime("name: mine", "initializer: {dataset: {storageUri: 'hf://a/b'}}, "),
			[]string{`initializer: .*refused`},
		},
		"deepspeed by its name": {onRuntime("name: deepspeed-distributed", ""), []string{`runtimeRef: ` +
			`.*refused: .*mpirun`}},
		"mlx by its name": {onRuntime("name: mlx-distributed", ""), []string{`runtimeRef: .*refused: .*mpirun`}},
		"xgboost by its name": {onRuntime("name: xgboost-distributed", ""), []string{`runtimeRef: ` +
			`.*refused: .*DMLC_`}},
		"flux by its name": {onRuntime("name: flux-distributed", ""), []string{`runtimeRef: .*refused: .*Flux`}},
		"torchtune by its name": {onRuntime("name: torchtune-llama3.2-1b", ""), []string{`runtimeRef: ` +
			`.*refused: .*tune`}},
		"a cache by its name": {onRuntime("name: torch-distributed-with-cache", ""), []string{`runtimeRef: ` +
			`.*refused`}},
		"tune run of a TrainJob": {
			strings.Replace(onRuntime("name: torch-distributed", ""), "python, t.py", "tune, run, x", 1),
			[]string{`command: .*tune`},
		},
		"a patch of another's pods": {
			onRuntime("name: mine", "runtimePatches: [{manager: m.io/n, trainingRuntimeSpec: {template: {spec: "+
				"{replicatedJobs: [{name: launcher}]}}}}], "),
			[]string{`name: "launcher": refused: the runtime starts pods of this name`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(c.in)}})
			notes := lines(out.Notes)
			if out.Jobs != 0 || !out.Invalid {
				t.Errorf("%d jobs, invalid %v: want none, and that", out.Jobs, out.Invalid)
			}
			for _, want := range c.lines {
				if !regexp.MustCompile(want).MatchString(notes) {
					t.Errorf("no line like %s in\n%s", want, notes)
				}
			}
			if strings.Contains(notes, "Runtime r: beside") {
				t.Errorf("the runtime is not beside a job:\n%s", notes)
			}
		})
	}
}

// TestRuntimesByName: of a runtime that nobody knows, a line tells what is assumed.
func TestRuntimesByName(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"name: mine", "name: deepspeed-distributed, kind: TrainingRuntime"} {
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(onRuntime(ref, ""))}})
		if out.Jobs != 1 || !out.Lossy || !strings.Contains(fmt.Sprint(out.Notes), "import assumes pods of "+
			"one container") {
			t.Errorf("%s: %d jobs: %v", ref, out.Jobs, out.Notes)
		}
	}
}
