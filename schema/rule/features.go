package rule

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// featureRules refuse what a target cannot carry, a rule a feature, so that a mistake elsewhere hides none of them.
func featureRules() []oldRule {
	out := make([]oldRule, len(target.Features))
	for i, f := range target.Features {
		check := func(r *Validation) { r.carries(f) }
		out[i] = oldRule{check, "framework target mxnet.mode bytescheduler.mode " + f.DependsOn}
	}
	return out
}

func (r *Validation) carries(f target.Feature) {
	t := r.Row
	if t == nil || t.Carries(f.Name) {
		return
	}
	paths := f.Used(&r.Written)
	if len(paths) == 0 {
		return
	}
	can := target.Instead(t, f.Name)
	if strings.HasPrefix(f.Name, "roles.") {
		can += "; as for this job, " + r.Spec.OthersWords()
	}
	for _, path := range paths {
		r.fail(path, "target", "target %s of framework %s cannot carry this: %s; %s",
			t.Name, t.Framework, t.Lacks[f.Name], can)
	}
}

// release is the first minor release of Kubernetes whose API server keeps a field that tegen renders. Older ones drop
// it without a word, or refuse it, and the job means something else.
type release struct {
	minor     int
	what      string // of the API
	without   string // what becomes of the job on an older one, and what to write there
	dependsOn string
	used      func(*target.Written) []string // the paths where a job asks for it
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
		func(j *target.Written) []string {
			return target.When(j.Spec.MakesJobs() && j.Spec.Failing((*job.Failure).TellsApart),
				"failure.ignoreDisruptions")
		},
	},
	{
		27, "schedulingGates of a Pod", "suspended pods would start: use target job", "target suspend",
		func(j *target.Written) []string {
			return target.When(j.Spec.Target == job.TargetPods && j.Spec.Suspend, "suspend")
		},
	},
	{
		27, "persistentVolumeClaimRetentionPolicy of a StatefulSet", "the next run would find the data of the last: " +
			"leave storage out", "rendezvous.store rendezvous.etcd rendezvous.companion",
		func(j *target.Written) []string {
			v := &j.Spec.Rendezvous
			return append(target.When(v.Store == job.StoreEtcd && v.Etcd.Storage != nil, "rendezvous.etcd.storage"),
				target.When(v.Store == job.StoreCompanion && v.Companion.Storage != nil,
					"rendezvous.companion.storage")...)
		},
	},
	{ // where the Job has a podFailurePolicy, its controller does as much by itself (onlyReplaceFailedPods)
		29, "podReplacementPolicy of a Job", "a pod would be replaced while it still ends, by one of the same " +
			"hostname: set failure.ignoreDisruptions: true",
		"target framework failure groups",
		func(j *target.Written) []string {
			replaced := func(f *job.Failure) bool {
				return !f.TellsApart() && (f.Restarts.None || f.Restarts.Limit > 0)
			}
			return target.When(j.Spec.MakesJobs() && j.Spec.Failing(replaced), "kubernetesVersion")
		},
	},
	{
		29, "backoffLimitPerIndex of a Job", "there would be no limit of its own for a worker: set failure.restarts",
		"target failure",
		func(j *target.Written) []string {
			return target.When(j.Spec.MakesJobs() && j.Spec.Failure.RestartsPerWorker != nil,
				"failure.restartsPerWorker")
		},
	},
	{
		29, "sidecars", "the program would wait for their end: leave them out", "sidecars",
		func(j *target.Written) []string { return target.When(len(j.Spec.Sidecars) > 0, "sidecars") },
	},
	{
		31, "successPolicy of a Job", "the job would not be complete when its training is: set workers.replicas alone",
		"target workers",
		func(j *target.Written) []string {
			if !j.Spec.MakesJobs() || j.Spec.HostLaunched() {
				return nil
			}
			return target.Elastic(j)
		},
	},
	{
		31, "successPolicy of a Job", "workers that serve the first would keep the job from being complete: use " +
			"target mpijob",
		"target framework bytescheduler.mode mpi",
		func(j *target.Written) []string {
			return target.When(j.Spec.MakesJobs() && j.Spec.HostLaunched(), "target")
		},
	},
	{
		32, "managedBy of a Job", "its own controller would start it too: leave it out", "target managedBy",
		func(j *target.Written) []string {
			return target.When(j.Spec.Target == job.TargetJob && j.Spec.ManagedBy != "", "managedBy")
		},
	},
	{
		32, "claims of this form", "no devices would be found; they are off by default before 1.34: ask for those of " +
			"a device plugin by resources.gpuResource", "resources.deviceClass resources.claims resources.gpu",
		func(j *target.Written) []string {
			if j.Spec.Resources.DeviceClass != "" {
				return target.When(true, "resources.deviceClass")
			}
			return target.When(len(j.Spec.Resources.Claims) > 0, "resources.claims")
		},
	},
	{
		35, "images as volumes by default", "the code would be missing: fetch it by code.git, or build it into the " +
			"image", "code",
		func(j *target.Written) []string {
			return target.When(j.Spec.Code != nil && j.Spec.Code.Image != "", "code.image")
		},
	},
}

// releaseRules refuse what the cluster's release would lose.
func releaseRules() (all []oldRule) {
	for _, row := range releases {
		all = append(all, oldRule{func(r *Validation) {
			if minor := r.Spec.Minor(); minor == 0 || minor >= row.minor {
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

// target refuses a target that the framework does not have.
func (r *Validation) target() {
	s := &r.Spec
	if r.Row != nil {
		return
	}
	var names, having []string
	for _, t := range target.All {
		if t.Framework == s.Framework {
			names = append(names, t.Name)
		}
		if t.Name == s.Target {
			having = append(having, t.Framework)
		}
	}
	if r.IsSet("spec.target") {
		r.fail("spec.target", "target", "framework %s has no target %s: one of %s; or set spec.framework to one that "+
			"has it: %s", s.Framework, s.Target, strings.Join(names, ", "), strings.Join(having, ", "))
		return
	}
	r.fail("spec.framework", "target", "%s has no target %s, which is the default: set spec.target to one of %s",
		s.Framework, s.Target, strings.Join(names, ", "))
}
