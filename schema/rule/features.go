package rule

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

// featureRules refuse what a target cannot carry. Each feature is a rule, so that a mistake in the job hides only what
// depends on it.
func featureRules() []Rule {
	all := []Rule{part.Of2(targetOfFramework, part.Framework, part.Target)}
	for _, f := range target.Features {
		all = append(all, usedRule(f.Used, "target", lacking(f.Name)))
	}
	return all
}

// usedRule refuses every path where a job uses something, if there is a reason.
func usedRule(used part.Func[*target.Used], id string, reason *part.Value[string]) Rule {
	return Rule{
		Reads: append([]part.Read{reason}, used.Reads...),
		Call: func(p *Problems, j *job.Job) {
			u := &target.Used{Tree: p.Tree}
			if used.Call(u, j); len(u.Paths) == 0 { // as nearly always: the reason takes longer
				return
			}
			text := reason.Of(j)
			if text != "" && strings.HasPrefix(u.Paths[0], "spec.roles.") && p.Knows(others) {
				text += "; as for this job, " + others.Of(j)
			}
			for _, path := range u.Paths {
				if text != "" {
					p.fail(path, id, "%s", text)
				}
			}
		},
	}
}

// lacking is the reason why the job's target cannot carry a feature, "" if it can.
func lacking(feature string) *part.Value[string] {
	return part.OfSpec(strings.Join(target.Row.Fields(), " "), func(s *job.Spec) string {
		t := target.For(s)
		if t == nil || t.Carries(feature) {
			return ""
		}
		return fmt.Sprintf("target %s of framework %s cannot carry this: %s; %s", t.Name, t.Framework, t.Lacks[feature],
			target.Instead(t, feature))
	})
}

// release is the first minor release of Kubernetes whose API server keeps a field that tegen renders. Older ones drop
// it without a word, or refuse it, and the job means something else.
type release struct {
	minor   int
	what    string                  // of the API
	without string                  // what becomes of the job on an older one, and what to write there
	used    part.Func[*target.Used] // finds the paths where a job needs it
}

// failing says whether the failures of the workers, or of some group, are handled in some way.
func failing(does func(*job.Failure) bool) *part.Value[bool] {
	return part.OfSpec("failure groups", func(s *job.Spec) bool { return s.Failing(does) })
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
		target.UsedWhen("failure.ignoreDisruptions", part.And(part.MakesJobs, failing((*job.Failure).TellsApart))),
	},
	{
		27, "schedulingGates of a Pod", "suspended pods would start: use target job",
		target.UsedWhen("suspend", part.OfSpec("target suspend", func(s *job.Spec) bool {
			return s.Target == job.TargetPods && s.Suspend
		})),
	},
	{
		27, "persistentVolumeClaimRetentionPolicy of a StatefulSet", "the next run would find the data of the last: " +
			"leave storage out",
		part.Of3(func(u *target.Used, store string, etcd *job.Etcd, companion *job.Companion) {
			u.When(store == job.StoreEtcd && etcd.Storage != nil, "rendezvous.etcd.storage")
			u.When(store == job.StoreCompanion && companion.Storage != nil, "rendezvous.companion.storage")
		}, part.Store, part.Etcd, part.Companion),
	},
	{ // where the Job has a podFailurePolicy, its controller does as much by itself (onlyReplaceFailedPods)
		29, "podReplacementPolicy of a Job", "a pod would be replaced while it still ends, by one of the same " +
			"hostname: set failure.ignoreDisruptions: true",
		target.UsedWhen("kubernetesVersion", part.And(part.MakesJobs, failing(func(f *job.Failure) bool {
			return !f.TellsApart() && (f.Restarts.None || f.Restarts.Limit > 0)
		}))),
	},
	{
		29, "backoffLimitPerIndex of a Job", "there would be no limit of its own for a worker: set failure.restarts",
		part.Of2(func(u *target.Used, makesJobs bool, restarts *int32) {
			u.When(makesJobs && restarts != nil, "failure.restartsPerWorker")
		}, part.MakesJobs, part.RestartsPerWorker),
	},
	{
		29, "sidecars", "the program would wait for their end: leave them out",
		target.UsedWhen("sidecars", part.OfSpec("sidecars", func(s *job.Spec) bool { return len(s.Sidecars) > 0 })),
	},
	{
		31, "successPolicy of a Job", "the job would not be complete when its training is: set workers.replicas alone",
		part.Of3(func(u *target.Used, makesJobs, hostLaunched bool, n part.Count) {
			if makesJobs && !hostLaunched {
				target.Elastic(u, n)
			}
		}, part.MakesJobs, part.HostLaunched, part.Counts),
	},
	{
		31, "successPolicy of a Job", "workers that serve the first would keep the job from being complete: use " +
			"target mpijob",
		target.UsedWhen("target", part.And(part.MakesJobs, part.HostLaunched)),
	},
	{
		32, "managedBy of a Job", "its own controller would start it too: leave it out",
		target.UsedWhen("managedBy", part.OfSpec("target managedBy", func(s *job.Spec) bool {
			return s.Target == job.TargetJob && s.ManagedBy != ""
		})),
	},
	{
		32, "claims of this form", "no devices would be found; they are off by default before 1.34: ask for those of " +
			"a device plugin by resources.gpuResource",
		part.Of2(func(u *target.Used, class, claims bool) {
			u.When(class, "resources.deviceClass")
			u.When(claims && !class, "resources.claims")
		}, part.OfSpec("resources.deviceClass", func(s *job.Spec) bool { return s.Resources.DeviceClass != "" }),
			part.OfSpec("resources.claims", func(s *job.Spec) bool { return len(s.Resources.Claims) > 0 })),
	},
	{
		35, "images as volumes by default", "the code would be missing: fetch it by code.git, or build it into the " +
			"image",
		target.UsedWhen("code.image", part.OfSpec("code", func(s *job.Spec) bool {
			return s.Code != nil && s.Code.Image != ""
		})),
	},
}

// releaseRules refuse what the cluster's release would lose.
func releaseRules() (all []Rule) {
	for _, row := range releases {
		older := part.OfSpec("kubernetesVersion", func(s *job.Spec) string {
			if minor := s.Minor(); minor == 0 || minor >= row.minor {
				return ""
			}
			return fmt.Sprintf("Kubernetes %s has no %s, which 1.%d has: %s", s.KubernetesVersion, row.what, row.minor,
				row.without)
		})
		all = append(all, usedRule(row.used, "requires", older))
	}
	return all
}

// targetOfFramework refuses a target that the framework does not have.
func targetOfFramework(p *Problems, framework, name string) {
	if target.Of(framework, name) != nil {
		return
	}
	var names, having []string
	for _, t := range target.All {
		if t.Framework == framework {
			names = append(names, t.Name)
		}
		if t.Name == name {
			having = append(having, t.Framework)
		}
	}
	if p.IsSet("spec.target") {
		p.fail("spec.target", "target", "framework %s has no target %s: one of %s; or set spec.framework to one that "+
			"has it: %s", framework, name, strings.Join(names, ", "), strings.Join(having, ", "))
		return
	}
	p.fail("spec.framework", "target", "%s has no target %s, which is the default: set spec.target to one of %s",
		framework, name, strings.Join(names, ", "))
}
