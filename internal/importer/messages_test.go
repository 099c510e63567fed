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
			"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\n",
			"TFJob x: dropped: this kind is not read",
		},
		"deployment": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {" + pod + "}\n",
			"Deployment x: dropped: this kind is not read",
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
