package plan

import (
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema"
)

// TestNeeds: what no object names and the job does not run without is listed, and a Namespace that is rendered is not.
func TestNeeds(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\n" +
		"spec: {image: 'a/b:1', command: [python, t.py], workers: {replicas: 2}, "
	const namespace, gpus = "Namespace/ml", "nodes with nvidia.com/gpu, of NVIDIA's device plugin"
	for spec, want := range map[string][]string{
		"createNamespace: true}":                    {},
		"resources: {cpu: 1}}":                      {namespace},
		"resources: {gpu: 1, cpu: 1, memory: 1Gi}}": {namespace, gpus},
		"resources: {machine: p5.48xlarge, gpu: 8}}": {
			namespace, gpus, "nodes with vpc.amazonaws.com/efa, of the EFA device plugin",
		},
		"identity: {irsa: {role: 'arn:aws:iam::123456789012:role/x'}}}": {
			"IAM role arn:aws:iam::123456789012:role/x, which trusts system:serviceaccount:ml:a", namespace,
		},
		"identity: {podIdentity: {}}}": {"EKS Pod Identity association of ServiceAccount a in ml", namespace},
	} {
		jobs, err := schema.Load([]schema.Source{{Name: "f", Data: []byte(head + spec + "\n")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(jobs[0], generators.Generate(jobs[0])).Needs; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
