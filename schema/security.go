package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

// The levels of the Pod Security Standards, from the strictest to the one that admits everything.
const (
	PodSecurityRestricted = "restricted"
	PodSecurityBaseline   = "baseline"
	PodSecurityPrivileged = "privileged"
)

var podSecurityLevels = []string{PodSecurityRestricted, PodSecurityBaseline, PodSecurityPrivileged}

// PodSecurity returns the strictest Pod Security Standard that admits all pods of the job, without regard to what a
// podTemplate adds. The container of DLRover's master has no security context, and TorchElastic's controller was built
// before the pods' field seccompProfile and drops it.
func (j *Job) PodSecurity() string {
	f := j.Fabric()
	switch {
	case j.Spec.Network.Host, f.LocksMemory(), f != nil && len(f.HostPaths) > 0:
		return PodSecurityPrivileged // baseline forbids the node's network, ports and directories, and IPC_LOCK
	case j.Spec.Security.RunAsUser.Number == nil, j.Spec.Security.RunAsUser.Is(0), !j.Spec.Security.Restricted,
		j.Spec.Target == TargetElasticJob:
		return PodSecurityBaseline
	}
	return PodSecurityRestricted
}

// EnforcedPodSecurity returns the level that the Namespace of the job enforces, "" if the job does not render one, or
// if a podTemplate may need more than what is known here.
func (j *Job) EnforcedPodSecurity() string {
	if !j.Spec.CreateNamespace || j.Spec.Patched() {
		return ""
	}
	return j.PodSecurity()
}

// systemNamespaces are those that controllers are installed in by default. TorchElastic's, elastic-job, is not among
// them: its documentation runs jobs beside the controller.
var systemNamespaces = []string{
	"argocd", "cert-manager", "dlrover", "flux-system", "gpu-operator", "istio-system", "jobset-system",
	"kai-scheduler", "karpenter", "koordinator-system", "kubeflow", "kubeflow-system", "kueue-system", "lws-system",
	"mpi-operator", "network-operator", "nvidia-gpu-operator", "nvidia-network-operator", "scheduler-plugins",
	"tegen-system", "volcano-system",
}

// IsSystemNamespace reports whether a namespace belongs to Kubernetes, which reserves the prefix kube-, to OpenShift or
// to a well-known controller.
func IsSystemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift-") ||
		slices.Contains(systemNamespaces, name)
}

// sharedNamespaces refuses a job whose pods the Namespace of another job would not admit. A patched job is only
// refused if it needs more than any other job could: what its podTemplate takes away is unknown.
func sharedNamespaces(jobs []loaded, roots []*structural.Node) (errs Errors) {
	creators := map[string]*Job{}
	complete := func(l loaded) bool {
		return l.job != nil && !slices.ContainsFunc([]string{
			"metadata", "createNamespace", "security", "network", "target", "resources", "podTemplate", "roles",
			"groups",
		}, l.invalid.touch)
	}
	for _, l := range jobs {
		if complete(l) && l.job.EnforcedPodSecurity() != "" {
			creators[l.job.Metadata.Namespace] = l.job
		}
	}
	if len(creators) == 0 {
		return nil
	}
	for i, l := range jobs {
		if !complete(l) {
			continue
		}
		creator := creators[l.job.Metadata.Namespace]
		if creator == nil || creator == l.job {
			continue
		}
		enforced, needed := creator.EnforcedPodSecurity(), l.job.PodSecurity()
		if l.job.Spec.Patched() && needed != PodSecurityPrivileged ||
			slices.Index(podSecurityLevels, needed) <= slices.Index(podSecurityLevels, enforced) {
			continue
		}
		errs = append(errs, roots[i].Errorf("metadata.namespace", "requires",
			"job %q needs Pod Security level %s, and job %q (%s) creates namespace %s with level %s, which refuses "+
				"these pods: use another namespace for one of the jobs, or set createNamespace in job %[1]q instead",
			l.job.Metadata.Name, needed, creator.Metadata.Name, creator.Position(), creator.Metadata.Namespace,
			enforced))
	}
	return errs
}

// namespaceNotes reports a Namespace that lets all its pods do what the job needs.
func (j *Job) namespaceNotes() []string {
	if j.EnforcedPodSecurity() != PodSecurityPrivileged {
		return nil
	}
	return []string{"spec.createNamespace: the pods need host access, so the namespace gets Pod Security level " +
		"privileged, for all pods in it; use a namespace for this job alone"}
}
