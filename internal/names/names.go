// Package names holds the names that tegen's parts and binaries share: API
// identifiers, labels, annotations, environment variables, ports and paths. A
// name that only one file reads does not belong here. It imports nothing of
// the project, so that everything may import it.
package names

import "strings"

// The API that authors write.
const (
	APIVersion      = "tegen.dev/v1alpha1"
	KindTrainingJob = "TrainingJob"
	KindEnvironment = "Environment"
	KindGenerator   = "Generator" // configuration of the KRM function
	KindCheck       = "Check"     // configuration of the KRM function that only checks references
)

// Labels and annotations of the product's own domain.
const (
	// Expects is an annotation on a workload: a comma-separated list of Kind/name that must exist in its
	// namespace before the bundle is applied, because no object of the bundle provides them.
	Expects = "tegen.dev/expects"
	// ContentHash is an annotation on objects whose name carries a hash of their immutable part.
	ContentHash = "tegen.dev/content-hash"
	// Version is an annotation on objects that run pods: the version of tegen that rendered them.
	Version = "tegen.dev/version"
	// Input is an annotation on objects that run pods: a digest of what the author wrote, see job.Job.Input.
	Input = "tegen.dev/input"
	// Policy is an annotation on a ConfigMap of an overlay: "true" if its data are the CUE files of a policy.
	Policy = "tegen.dev/policy"
	// LabelJob is a label on a job's objects and pods, with the job's name: it selects what goes with the job.
	// app.kubernetes.io/instance cannot: where Argo CD tracks by label, it writes its Application's name there.
	LabelJob = "tegen.dev/job"
	// LabelData is a label on what outlives its job, in place of LabelJob: claims, volumes, their classes, the
	// Namespace. Its value is the job's name. What stays of an installation has it too.
	LabelData = "tegen.dev/data"
	// InstalledAs is an annotation on the Deployment or StatefulSet of an installation: the namespace/name that it was
	// rendered for.
	InstalledAs = "tegen.dev/installed-as"
	// LabelNamespace is a label on objects in no namespace: the namespace of their job.
	LabelNamespace = "tegen.dev/namespace"
	// LabelComponent is the recommended label for the part that an object or pod plays in its job.
	LabelComponent = "app.kubernetes.io/component"
	// LabelManagedBy is the recommended label for the tool that made an object, here ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// Annotations of reconcilers that leave an object in the cluster when git has it no more: options of Argo CD, separated
// by commas, for what it does and for what it compares, and whether Flux prunes.
const (
	ArgoSyncOptions    = "argocd.argoproj.io/sync-options"
	ArgoCompareOptions = "argocd.argoproj.io/compare-options"
	FluxPrune          = "kustomize.toolkit.fluxcd.io/prune"
)

// Keeps are those annotations: key and option.
func Keeps() [][2]string {
	return [][2]string{
		{ArgoSyncOptions, "Prune=false"}, {ArgoSyncOptions, "Delete=false"}, {FluxPrune, "disabled"},
	}
}

// What has a reconciler delete objects and make them anew. Argo CD reads the hooks of Helm too.
const (
	argoHook  = "argocd.argoproj.io/hook"
	helmHook  = "helm.sh/hook"
	fluxForce = "kustomize.toolkit.fluxcd.io/force"
)

// Recreates says whether an annotation has Argo CD or Flux delete an object and make it anew: with each sync, as a hook
// without a policy is, or where a change is refused. Flux takes a label for an annotation.
func Recreates(key, value string) bool {
	switch key {
	case argoHook, helmHook:
		return IsHook(key, value)
	case fluxForce:
		return strings.EqualFold(value, "enabled")
	case ArgoSyncOptions:
		for option := range strings.SplitSeq(value, ",") {
			if option = strings.TrimSpace(option); option == "Force=true" || option == "Replace=true" {
				return true
			}
		}
	}
	return false
}

// IsHook says whether an annotation makes a hook of Argo CD's of an object, which is made anew with each sync. It takes
// no CRD of old charts for one (gitops-engine, pkg/sync/hook/helm).
func IsHook(key, value string) bool {
	return key == argoHook && value != "" && value != "Skip" ||
		key == helmHook && value != "" && value != "Skip" && value != "crd-install"
}

// JobOf is the name of the job that an object with these labels was rendered for, "" for none.
func JobOf(label func(key string) string) string {
	if name := label(LabelJob); name != "" {
		return name
	}
	return label(LabelData)
}

// ManagedBy is the value of LabelManagedBy on every object that tegen renders.
const ManagedBy = "tegen"

// Scheduler is the name of the scheduler of gangs: of its program, its objects, and the profile that pods ask for.
const Scheduler = "tegen-scheduler"

// AuthenticationReader is a role of kube-system by which a server learns how the API server authenticates.
const AuthenticationReader = "extension-apiserver-authentication-reader"

// Rendezvous is the name of the rendezvous service: of its program, and of its image.
const Rendezvous = "tegen-rendezvous"

// RendezvousPassword is the variable that 'tegen-rendezvous serve' and 'proxy' read the password of an etcd from.
const RendezvousPassword = "TEGEN_RENDEZVOUS_PASSWORD"

// Ports of the rendezvous. 2379, 2380 and 2381 are etcd's own conventions, 29400 is torchrun's default.
const (
	EtcdClientPort       = 2379
	EtcdPeerPort         = 2380
	EtcdMetricsPort      = 2381
	RendezvousStatusPort = 2381
	C10dPort             = 29400
)
