package schema

import "fmt"

// release is the first minor release of Kubernetes whose API server keeps a field that tegen renders. Older ones drop
// it without a word, or refuse it, and the job means something else.
type release struct {
	minor     int
	what      string // of the API
	without   string // what becomes of the job on an older one, and what to write there
	dependsOn string
	used      func(*Written) []string // the paths where a job asks for it
}

// releases are those from which the feature gates of the fields are on, but for claims, which have an API that is
// served when somebody asks for it. gangVersion has those of Kubernetes' own gangs.
//
// Source: kubernetes/kubernetes, pkg/features/kube_features.go of 1.28 and 1.36: JobPodFailurePolicy and
// PodDisruptionConditions; PodSchedulingReadiness, StatefulSetAutoDeletePVC; JobPodReplacementPolicy,
// JobBackoffLimitPerIndex, SidecarContainers; JobSuccessPolicy; JobManagedBy, DynamicResourceAllocation; ImageVolume.
var releases = []release{
	{
		26, "podFailurePolicy of a Job", "every failed pod would count alike: leave fatalExitCodes out and set " +
			"failure.ignoreDisruptions: false",
		"target failure groups",
		func(j *Written) []string {
			return when(j.Spec.makesJobs() && j.Spec.failing((*Failure).tellsApart), "failure.ignoreDisruptions")
		},
	},
	{
		27, "schedulingGates of a Pod", "suspended pods would start: use target job", "target suspend",
		func(j *Written) []string { return when(j.Spec.Target == TargetPods && j.Spec.Suspend, "suspend") },
	},
	{
		27, "persistentVolumeClaimRetentionPolicy of a StatefulSet", "the next run would find the data of the last: " +
			"leave storage out", "rendezvous.store rendezvous.etcd rendezvous.companion",
		func(j *Written) []string {
			v := &j.Spec.Rendezvous
			return append(when(v.Store == StoreEtcd && v.Etcd.Storage != nil, "rendezvous.etcd.storage"),
				when(v.Store == StoreCompanion && v.Companion.Storage != nil, "rendezvous.companion.storage")...)
		},
	},
	{ // where the Job has a podFailurePolicy, its controller does as much by itself (onlyReplaceFailedPods)
		29, "podReplacementPolicy of a Job", "a pod would be replaced while it still ends, by one of the same " +
			"hostname: set failure.ignoreDisruptions: true",
		"target framework failure groups",
		func(j *Written) []string {
			replaced := func(f *Failure) bool { return !f.tellsApart() && (f.Restarts.None || f.Restarts.Limit > 0) }
			return when(j.Spec.makesJobs() && j.Spec.failing(replaced), "kubernetesVersion")
		},
	},
	{
		29, "backoffLimitPerIndex of a Job", "there would be no limit of its own for a worker: set failure.restarts",
		"target failure",
		func(j *Written) []string {
			return when(j.Spec.makesJobs() && j.Spec.Failure.RestartsPerWorker != nil, "failure.restartsPerWorker")
		},
	},
	{
		29, "sidecars", "the program would wait for their end: leave them out", "sidecars",
		func(j *Written) []string { return when(len(j.Spec.Sidecars) > 0, "sidecars") },
	},
	{
		31, "successPolicy of a Job", "the job would not be complete when its training is: set workers.replicas alone",
		"target workers",
		func(j *Written) []string {
			if !j.Spec.makesJobs() || j.Spec.HostLaunched() {
				return nil
			}
			return elastic(j)
		},
	},
	{
		31, "successPolicy of a Job", "workers that serve the first would keep the job from being complete: use " +
			"target mpijob",
		"target framework bytescheduler.mode mpi",
		func(j *Written) []string {
			return when(j.Spec.makesJobs() && j.Spec.HostLaunched(), "target")
		},
	},
	{
		32, "managedBy of a Job", "its own controller would start it too: leave it out", "target managedBy",
		func(j *Written) []string {
			return when(j.Spec.Target == TargetJob && j.Spec.ManagedBy != "", "managedBy")
		},
	},
	{
		32, "claims of this form", "no devices would be found; they are off by default before 1.34: ask for those of " +
			"a device plugin by resources.gpuResource", "resources.deviceClass resources.claims resources.gpu",
		func(j *Written) []string {
			if j.Spec.Resources.DeviceClass != "" {
				return when(true, "resources.deviceClass")
			}
			return when(len(j.Spec.Resources.Claims) > 0, "resources.claims")
		},
	},
	{
		35, "images as volumes by default", "the code would be missing: fetch it by code.git, or build it into the " +
			"image", "code",
		func(j *Written) []string {
			return when(j.Spec.Code != nil && j.Spec.Code.Image != "", "code.image")
		},
	},
}

// releaseRules refuse what the cluster's release would lose.
func releaseRules() (all []rule) {
	for _, row := range releases {
		all = append(all, rule{func(r *validation) {
			if minor := r.Spec.minor(); minor == 0 || minor >= row.minor {
				return
			}
			for _, at := range row.used(&r.Written) {
				r.fail(at, "requires", "Kubernetes %s has no %s, which 1.%d has: %s", r.Spec.KubernetesVersion,
					row.what, row.minor, row.without)
			}
		}, fmt.Sprint("kubernetesVersion ", row.dependsOn)})
	}
	return all
}

// makesJobs says whether the workers are a Job of Kubernetes that replaces pods, by itself or made by a controller.
func (s *Spec) makesJobs() bool {
	return !s.ParameterServers() && (s.Target == TargetJob || s.Target == TargetJobSet || s.Target == TargetTrainJob)
}

// tellsApart says whether some failures are to count for more or less than others.
func (f *Failure) tellsApart() bool { return f.IgnoreDisruptions || len(f.FatalExitCodes) > 0 }
