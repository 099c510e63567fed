package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestAcceleratorNotes: what accelerators of AMD, AWS and Google need beside their resource is told once it is missing,
// and not where it is there.
func TestAcceleratorNotes(t *testing.T) {
	const tpu = `framework: jax, target: jobset, workers: {replicas: 8, slices: 2}, ` +
		`resources: {machine: ct6e-standard-4t, gpu: 4, cpu: 9, memory: 9Gi}, `
	const topology = `placement: {nodeSelector: {cloud.google.com/gke-tpu-topology: 4x4}}, `
	const exclusive = `workload: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: pool}}, `
	const root = `security: {runAsUser: image, restricted: false}, `
	const privileged = `podTemplate: {spec: {containers: [{name: worker, securityContext: {privileged: true}}]}}`
	const amd = `workers: {replicas: 1}, resources: {gpu: 1, gpuResource: amd.com/gpu, cpu: 9, memory: 9Gi}, `
	const neuron = `, resources: {gpu: 4, gpuResource: aws.amazon.com/neuron, cpu: 9, memory: 9Gi}, `
	for spec, want := range map[string][]string{
		tpu + topology + exclusive + root + privileged:      nil,
		tpu + topology + exclusive:                          {"spec.security.restricted: the library of TPUs"},
		tpu + topology + root + privileged:                  {"spec.workers.slices: nothing keeps two slices"},
		tpu + exclusive + root + privileged:                 {"spec.placement.nodeSelector: GKE has nodes of TPUs"},
		amd:                                                 {"spec.security.runAsUser: /dev/kfd"},
		amd + `security: {runAsUser: 0, restricted: false}`: nil,
		amd + `podTemplate: {spec: {securityContext: {supplementalGroups: [44]}}}`: nil,
		`workers: {replicas: 2}` + neuron:                                          {"spec.workers.processes: 4, one"},
		`workers: {replicas: 2, processes: 8}` + neuron:                            nil,
		`workers: {replicas: 2}, resources: {machine: trn1.32xlarge, gpu: 16}`:     nil,
		`workers: {replicas: 2}, resources: {gpu: 4, cpu: 9, memory: 9Gi}`:         nil,
	} {
		text := strings.Replace(machineJob, "workers: {replicas: 2}, ", "", 1) + strings.TrimSuffix(spec, ", ") + "}"
		jobs, err := Load([]Source{{Name: "job", Data: []byte(text)}})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		got := note.AcceleratorNotes(jobs[0])
		for i, note := range got {
			if i >= len(want) || !strings.HasPrefix(note, want[i]) {
				t.Errorf("%s: note %q, want %q", spec, note, want)
			}
		}
		if len(got) < len(want) {
			t.Errorf("%s: notes %q, want %q", spec, got, want)
		}
	}
}

// TestTPUSlices: each Job's workers are those of one slice of TPUs, whole.
func TestTPUSlices(t *testing.T) {
	const rest = `resources: {machine: ct6e-standard-4t, gpu: 4, cpu: 9, memory: 9Gi}, ` +
		`placement: {nodeSelector: {cloud.google.com/gke-tpu-topology: 4x4}}}`
	for workers, ok := range map[string]bool{
		`target: jobset, workers: {replicas: 4}`:            true,
		`target: jobset, workers: {replicas: 8, slices: 2}`: true,
		`target: jobset, workers: {replicas: 8, slices: 4}`: false,
		`target: jobset, workers: {replicas: 8}`:            false,
		`workers: {replicas: 8}`:                            false,
		`workers: {replicas: 4}`:                            true,
	} {
		text := strings.Replace(machineJob, "workers: {replicas: 2}, ", "framework: jax, "+workers+", ", 1) + rest
		if _, err := Load([]Source{{Name: "job", Data: []byte(text)}}); (err == nil) != ok {
			t.Errorf("%s: %v", workers, err)
		}
	}
}
