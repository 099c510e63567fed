package job

import (
	"fmt"
)

// SaysGitOps says whether the job or its Environment gives gitops a value; without one it follows from the way in which
// the job is rendered.
func (j *Job) SaysGitOps() bool { return j.Origin.Asked.GitOps }

// OwnAccount says whether the job needs a ServiceAccount for rights: one that is rendered or one that exists.
func (s *Spec) OwnAccount() bool {
	id := s.Identity
	return id != nil && id.NodeRole == nil
}

// MultiKueue starts a job in another cluster of its queue.
const MultiKueue = "kueue.x-k8s.io/multikueue"

// LongestHostname is the most characters of a DNS label.
const LongestHostname = 63

const hashLength = len("-01234567")

// DerivedName is the length of the longest name that is made of the job's and is not its author's to choose, 0 where
// none could be too long: of a pod, or of the coordinator, <pod>.<service>, whose service is called like the JobSet.
func (j *Job) DerivedName(hashed bool) int {
	longest, name := j.PodNameLength(hashed), j.nameLength(hashed)
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

// PodNameLength is that of the longest pod's name. JobSet's webhook adds six random characters to the last pod's before
// it looks (jobset v0.12.0, pkg/webhooks/jobset_webhook.go).
func (j *Job) PodNameLength(hashed bool) int {
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

// HashFits says whether all names have room for a hash.
func (j *Job) HashFits() bool {
	hashed := *j
	hashed.Spec.HashedNames = true
	length, _ := hashed.HostList()
	return j.DerivedName(true) <= LongestHostname && length <= LongestArgument
}

// LeavesFailed says whether a worker that failed stays so and the others go on, on targets that do not count the
// failures of each.
func (s *Spec) LeavesFailed() bool {
	n := s.Failure.RestartsPerWorker
	return n != nil && *n == 0 &&
		(s.Target == TargetVCJob || s.Target == TargetElasticJob && s.Framework == FrameworkTorchelastic)
}
