package schema

import (
	"fmt"
	"strings"
)

// podNames holds the names that JobSet's controller derives against the length of a hostname. Its webhook adds six
// random characters to the last pod's name before it looks (jobset v0.12.0, pkg/webhooks/jobset_webhook.go).
func (r *ruling) podNames() {
	replicated, ok := map[string]string{TargetJobSet: "worker", TargetTrainJob: "node"}[r.Spec.Target]
	if !ok || !r.Spec.HashedNames {
		return
	}
	last := fmt.Sprintf("%s-01234567-%s-0-%d-abcde", r.Metadata.Name, replicated, max(r.Spec.Workers.Replicas, r.Spec.Workers.Max)-1)
	if over := len(last) - 63; over > 0 {
		r.fail("spec.hashedNames", "length", "pods of target %s would have names of %d characters, above 63: make metadata.name %d shorter, or leave the hash out", r.Spec.Target, len(last), over)
	}
}

// trainJobProcesses refuses what Trainer would count otherwise than torchrun: it takes a resource for an accelerator if
// its name has "gpu" in it, and CPUs only where there is none (kubeflow/trainer v2.3.0, pkg/runtime/runtime.go).
func (r *ruling) trainJobProcesses() {
	p, res := r.Spec.Workers.Processes, &r.Spec.Resources
	if r.Spec.Target != TargetTrainJob || p.IntVal > 0 || res.GPU == 0 {
		return
	}
	const at = "spec.workers.processes"
	switch seen := strings.Contains(strings.ToLower(res.GPUResource), "gpu"); {
	case p.StrVal == "cpu" && seen:
		r.fail(at, "requires", "Trainer starts a process for each accelerator where a pod has some: give a number")
	case p.StrVal != "cpu" && !seen:
		r.fail(at, "requires", "Trainer does not know %s for an accelerator and would count CPUs: give a number", res.GPUResource)
	}
}
