package generators

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// jobIndex is the field of a pod of a JobSet that holds which of the replicas of its Job made it: JobSet's label, which
// its own annotations repeat (jobset v0.12.0, api/jobset/v1alpha2/jobset_types.go).
const jobIndex = "metadata.labels['jobset.sigs.k8s.io/job-index']"

// divide makes a Job for each slice of the workers.
func divide(j *job.Job, r *apis.ReplicatedJob) {
	size := j.Spec.Workers.SliceSize()
	r.Replicas = j.Spec.Workers.Slices
	r.Template.Spec.Parallelism, r.Template.Spec.Completions = &size, &size
}

// sliceEnv tells a worker which slice it is of. Whoever has TPUs needs no more: GKE sets
// MEGASCALE_COORDINATOR_ADDRESS, MEGASCALE_NUM_SLICES and MEGASCALE_SLICE_ID for a JobSet's pods, as
// jax/_src/clusters/cloud_tpu_cluster.py reads them, and neither its own tools (AI-Hypercomputer/xpk) nor JobSet's
// example do.
func sliceEnv(j *job.Job) []corev1.EnvVar {
	if !j.Spec.Sliced() {
		return nil
	}
	return []corev1.EnvVar{
		{Name: "SLICE_ID", ValueFrom: fieldOf(jobIndex)},
		{Name: "NUM_SLICES", Value: strconv.Itoa(int(j.Spec.Workers.Slices))},
	}
}

// rankBySlice has a shell reckon the number of a process before it becomes the program: no field of a pod has it.
// Kubernetes sets JOB_COMPLETION_INDEX in every container of an Indexed Job.
func rankBySlice(j *job.Job, command []string) []string {
	text := fmt.Sprintf("set -eu\nexport JAX_PROCESS_ID=$((SLICE_ID * %d + JOB_COMPLETION_INDEX))\n"+
		"exec \"$@\"\n", j.Spec.Workers.SliceSize())
	return append([]string{"sh", "-c", text, "sh"}, command...)
}
