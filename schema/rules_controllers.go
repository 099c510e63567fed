package schema

import (
	"fmt"
	"strings"
)

var controllersRules = []rule{
	{(*validation).podNames, "framework target hashedNames metadata groups coordinator workers.replicas workers.max"},
	{(*validation).trainJobProcesses, "target workers.processes resources.gpu resources.gpuResource"},
}

// podNames holds the names that JobSet's controller derives against the length of a hostname.
func (r *validation) podNames() {
	length := r.derivedName(r.Spec.HashedNames)
	switch {
	case length <= longestHostname:
	case r.Spec.HashedNames && r.derivedName(false) <= longestHostname:
		r.fail("spec.hashedNames", "length",
			"pods of target %s would have names of %d characters, above %d: make metadata.name %d shorter, or leave "+
				"the hash out", r.Spec.Target, length, longestHostname, length-longestHostname)
	case r.Spec.Coordinator != nil && r.podNameLength(false) <= longestHostname:
		r.fail("spec.coordinator", "length", "its host name, which JobSet writes into a label, would have %d "+
			"characters, above %d: make metadata.name or the group's name shorter", length, longestHostname)
	default:
		r.fail("spec.groups", "length", "names of target %s that are made of metadata.name and a group's name would "+
			"have %d characters, above %d: make one of the two %d shorter", r.Spec.Target, length, longestHostname,
			length-longestHostname)
	}
}

const longestHostname = 63

const hashLength = len("-01234567")

// derivedName is the length of the longest name that is made of the job's and is not its author's to choose, 0 where
// none could be too long: of a pod, or of the coordinator, <pod>.<service>, whose service is called like the JobSet.
func (j *Job) derivedName(hashed bool) int {
	longest, name := j.podNameLength(hashed), j.nameLength(hashed)
	if c := j.Spec.Coordinator; c != nil {
		longest = max(longest, 2*name+len(fmt.Sprintf("-%s-0-%d.", c.Group, c.Index)))
	}
	return longest
}

func (j *Job) nameLength(hashed bool) int {
	if hashed {
		return len(j.Metadata.Name) + hashLength
	}
	return len(j.Metadata.Name)
}

// podNameLength is that of the longest pod's name. JobSet's webhook adds six random characters to the last pod's before
// it looks (jobset v0.12.0, pkg/webhooks/jobset_webhook.go).
func (j *Job) podNameLength(hashed bool) int {
	name, w := j.nameLength(hashed), &j.Spec.Workers
	last := max(w.Replicas, w.Max) - 1
	switch j.Spec.Target {
	case TargetTrainJob:
		return name + len(fmt.Sprintf("-node-0-%d-abcde", last))
	case TargetJobSet:
		longest := name + len(fmt.Sprintf("-worker-%d-%d-abcde", w.Slices-1,
			max(w.Replicas, w.Max)/max(w.Slices, 1)-1))
		for _, g := range j.Spec.Groups {
			longest = max(longest, name+len(fmt.Sprintf("-%s-0-%d-abcde", g.Name, g.Replicas-1)))
		}
		return longest
	}
	longest := 0
	for _, g := range j.Spec.Groups {
		longest = max(longest, name+len(fmt.Sprintf("-%s-%d", g.Name, g.Replicas-1)))
	}
	return longest
}

// hashFits says whether all names have room for a hash.
func (j *Job) hashFits() bool {
	hashed := *j
	hashed.Spec.HashedNames = true
	length, _ := hashed.hostList()
	return j.derivedName(true) <= longestHostname && length <= longestArgument
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
