package schema

import (
	"slices"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/rule"
)

var podSecurityLevels = []string{job.PodSecurityRestricted, job.PodSecurityBaseline, job.PodSecurityPrivileged}

// sharedNamespaces refuses a job whose pods the Namespace of another job would not admit. A patched job is only
// refused if it needs more than any other job could: what its podTemplate takes away is unknown.
func sharedNamespaces(jobs []rule.Loaded, roots []*structural.Node) (errs Errors) {
	creators := map[string]*job.Job{}
	known := func(l rule.Loaded) bool {
		return l.Knows(part.Metadata, part.CreateNamespace, part.Security, part.Network, part.Target, part.Resources,
			part.PodTemplate, part.Roles, part.Groups)
	}
	for _, l := range jobs {
		if known(l) && l.Job.EnforcedPodSecurity() != "" {
			creators[l.Job.Metadata.Namespace] = l.Job
		}
	}
	if len(creators) == 0 {
		return nil
	}
	for i, l := range jobs {
		if !known(l) {
			continue
		}
		creator := creators[l.Job.Metadata.Namespace]
		if creator == nil || creator == l.Job {
			continue
		}
		enforced, needed := creator.EnforcedPodSecurity(), l.Job.PodSecurity()
		if l.Job.Spec.Patched() && needed != job.PodSecurityPrivileged ||
			slices.Index(podSecurityLevels, needed) <= slices.Index(podSecurityLevels, enforced) {
			continue
		}
		errs = append(errs, roots[i].Errorf("metadata.namespace", "requires",
			"job %q needs Pod Security level %s, and job %q (%s) creates namespace %s with level %s, which refuses "+
				"these pods: use another namespace for one of the jobs, or set createNamespace in job %[1]q instead",
			l.Job.Metadata.Name, needed, creator.Metadata.Name, creator.Position(), creator.Metadata.Namespace,
			enforced))
	}
	return errs
}
