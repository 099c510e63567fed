package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestMessages: a training job that is not read is told why, and where.
func TestMessages(t *testing.T) {
	t.Parallel()
	const pod = `template: {spec: {containers: [{name: a, image: "a/b:1", command: [torchrun, t.py]}]}}`
	pytorch := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: same}\nspec: {pytorchReplicaSpecs: " +
		"{Worker: {" + pod + "}}}\n"
	for name, c := range map[string]struct{ in, want string }{
		"no training": {pytorch +
			"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: {containers: [{name: " +
			"a, image: b}]}}}\n", "x.yaml:6: Job x: beside"},
		"jobset": {
			"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec: {}\n",
			"JobSet x: dropped: it has no spec.replicatedJobs",
		},
		"dlrover": {
			"apiVersion: elastic.iml.github.io/v1alpha1\nkind: ElasticJob\nmetadata: {name: x}\nspec: {}\n",
			"ElasticJob x: dropped: it has no spec.replicaSpecs.worker",
		},
		"tfjob": {
			"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: {PS: {" + pod +
				"}, Worker: {replicas: 2, " + pod + "}}}\n",
			"TFJob x: dropped: its pods find each other by TF_CONFIG, which names all of them, and no framework of a " +
				"TrainingJob sets it: keep the TFJob",
		},
		"deployment": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {" + pod + "}\n",
			"Deployment x: dropped: its pods are started again when they have ended, and training with them",
		},
		"claims of a set": {
			"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec: {volumeClaimPolicies: " +
				"[{templates: [{metadata: {name: v}}]}], replicatedJobs: [{name: w, template: {spec: {" + pod +
				"}}}]}\n",
			"JobSet x: dropped: its spec.volumeClaimPolicies have JobSet make claims and mount them",
		},
		"an item without a kind": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n- {kind: " +
				"Job}\n",
			"x.yaml:5: unread: reading items[1]: apiVersion or kind is missing",
		},
		"an item that is no object": {
			"apiVersion: v1\nkind: List\nitems:\n- 17\n", "x.yaml:4: unread: reading List: items[0]: want a mapping",
		},
		"an item of a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: ray.io/v1, kind: RayJob, metadata: {name: x}}\n",
			"x.yaml:4: RayJob x: dropped: Ray starts its processes",
		},
		"a chart's file": {
			"# Source: train/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" +
				"# Source: train/templates/b.yaml\napiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: y}\n",
			"x.yaml:7 (train/templates/b.yaml): RayJob y: dropped: ",
		},
		"a source that is no comment before the object": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: |\n    # Source: b\n",
			"x.yaml:1: ConfigMap x: beside",
		},
		"ray": {
			"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: x}\nspec: {entrypoint: python t.py}\n",
			"RayJob x: dropped: Ray starts its processes, and no framework of a TrainingJob starts Ray",
		},
		"leaders": {
			"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: x}\nspec: {}\n",
			"LeaderWorkerSet x: dropped: its groups of a leader and workers go on for ever",
		},
		"same name": {
			pytorch + "---\n" + pytorch,
			`x.yaml:8: PyTorchJob same: metadata.name: "same": error: metadata.name: "same" is the name of the job ` +
				`at x.yaml:3 already`,
		},
		"template": {"kind: Job\nspec: {{ .Values.spec }}\n  x: 1\n", "unread: parsing YAML: "},
		"in braces": {
			"kind: Job\nspec: {{ .Values.spec }}\n  x: 1\n",
			"it has {{ }} of a template in it: import what the template makes",
		},
		"a template": {
			"kind: Job\nspec: {{ .Values.spec }}\n  x: 1\n",
			"it has {{ }} of a template in it: import what the template makes",
		},
		"no mode": {"apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: x}\nspec: {mxReplicaSpecs: " +
			"{Worker: {" + pod + "}}}\n", "MXJob x: dropped: spec.jobMode says nothing"},
		"tuning": {
			"apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: x}\nspec: {jobMode: MXTune}\n",
			"MXJob x: dropped: jobMode MXTune searches for kernels",
		},
		"no name": {"apiVersion: v1\nkind: ConfigMap\n", "x.yaml:1: ConfigMap: beside"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes strings.Builder
			for _, n := range importer.Jobs([]schema.Source{{Name: "x.yaml", Data: []byte(c.in)}}).Notes {
				fmt.Fprintln(&notes, n)
			}
			if !strings.Contains(notes.String(), c.want) {
				t.Errorf("want %s in\n%s", c.want, notes.String())
			}
		})
	}
}
