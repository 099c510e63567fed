package schema

import (
	"fmt"
	"strings"
)

var controllersRules = []rule{
	{(*validation).podNames, "target hashedNames metadata workers.replicas workers.max"},
	{(*validation).trainJobProcesses, "target workers.processes resources.gpu resources.gpuResource"},
}

// podNames holds the names that JobSet's controller derives against the length of a hostname.
func (r *validation) podNames() {
	if length := r.hashedPodName(); r.Spec.HashedNames && length > longestHostname {
		r.fail("spec.hashedNames", "length",
			"pods of target %s would have names of %d characters, above %d: make metadata.name %d shorter, or leave "+
				"the hash out", r.Spec.Target, length, longestHostname, length-longestHostname)
	}
}

const longestHostname = 63

// hashedPodName is the length of the longest name of a pod that is not ours to choose, 0 where all are. JobSet's
// webhook adds six random characters to the last pod's name before it looks (jobset v0.12.0,
// pkg/webhooks/jobset_webhook.go).
func (j *Job) hashedPodName() int {
	replicated, ok := map[string]string{TargetJobSet: "worker", TargetTrainJob: "node"}[j.Spec.Target]
	if !ok {
		return 0
	}
	return len(fmt.Sprintf("%s-01234567-%s-0-%d-abcde", j.Metadata.Name, replicated,
		max(j.Spec.Workers.Replicas, j.Spec.Workers.Max)-1))
}

// hashFits says whether all names have room for a hash.
func (j *Job) hashFits() bool {
	hashed := *j
	hashed.Spec.HashedNames = true
	length, _ := hashed.hostList()
	return j.hashedPodName() <= longestHostname && length <= longestArgument
}

// trainJobProcesses refuses what Trainer would count otherwise than torchrun: it takes a resource for an accelerator if
// its name has "gpu" in it, and CPUs only where there is none (kubeflow/trainer v2.3.0, pkg/runtime/runtime.go).
func (r *validation) trainJobProcesses() {
	p, res := r.Spec.Workers.Processes, &r.Spec.Resources
	if r.Spec.Target != TargetTrainJob || p.IntVal > 0 || res.GPU == 0 {
		return
	}
	const at = "spec.workers.processes"
	switch seen := strings.Contains(strings.ToLower(res.GPUResource), "gpu"); {
	case p.StrVal == "cpu" && seen:
		r.fail(at, "requires", "Trainer starts a process for each accelerator where a pod has some: give a number")
	case p.StrVal != "cpu" && !seen:
		r.fail(at, "requires", "Trainer does not take %s for an accelerator and would count CPUs: give a number",
			res.GPUResource)
	}
}
