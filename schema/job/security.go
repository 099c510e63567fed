package job

import (
	"slices"
	"strings"
)

// The levels of the Pod Security Standards, from the strictest to the one that admits everything.
const (
	PodSecurityRestricted = "restricted"
	PodSecurityBaseline   = "baseline"
	PodSecurityPrivileged = "privileged"
)

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
