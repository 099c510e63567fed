package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

var topologyRules = []Rule{
	{(*Validation).topologyScheduler, "gang target workers"},
	{(*Validation).topologyLevel, "gang target"},
	{(*Validation).topologySlice, "gang target framework bytescheduler.mode mxnet.mode workers"},
	{(*Validation).topologyKeys, "gang podTemplate roles"},
}

const topologyAt = "spec.gang.topology"

// topologyScheduler refuses a topology that the gang's scheduler, or who makes its PodGroup, has no word for.
func (r *Validation) topologyScheduler() {
	t, g := r.Spec.Topology(), r.Spec.Gang
	if t == nil {
		return
	}
	none := func(reason string) { r.fail(topologyAt, "requires", "%s: use %s", reason, g.OtherTopologies()) }
	switch {
	case g.Scheduler == job.GangNone && r.Spec.Target != job.TargetJobSet:
		none("without a gang scheduler pods are placed one by one, wherever there is room; target jobset alone has a " +
			"controller that keeps them in one domain")
	case g.Is(job.GangCoscheduling):
		none("the PodGroup of coscheduling has no topology, and the network plugins beside it weigh single pods of " +
			"an AppGroup")
	case g.Is(job.GangVolcano) && r.Spec.Target == job.TargetMPIJob:
		none("the MPI operator makes the PodGroup, and its schedulingPolicy has no topology")
	}
	if t.Required() {
		return
	}
	always := func(who string) {
		r.fail(topologyAt+".mode", "requires", "%s places the workers in one domain or not at all: leave it out, or "+
			"use koordinator, kueue, tegen or volcano", who)
	}
	switch {
	case g.Is(job.GangKubernetes):
		always("Kubernetes itself")
	case r.Spec.ExclusiveTopology():
		always("JobSet's controller")
	case g.Is(job.GangKueue, job.GangKoordinator) && t.Slice > 0:
		r.fail(topologyAt+".mode", "requires", "%s gives each slice a domain or places none: leave it out, or leave "+
			"out the slice", g.Scheduler)
	}
}

// topologyLevel finds the level. Koordinator and Volcano keep levels themselves, under names that no Environment needs
// to know; all others know labels of nodes.
func (r *Validation) topologyLevel() {
	t, g := r.Spec.Topology(), r.Spec.Gang
	if t == nil {
		return
	}
	const at = topologyAt + ".level"
	switch level := r.TopologyLevel(); {
	case level.Label == "" && (!g.Is(job.GangKoordinator, job.GangVolcano) || len(r.Origin.Levels) > 0):
		r.fail(at, "requires", "%s is no level that is known here: %s", t.Level, r.knownLevels())
	case g.Is(job.GangKoordinator) && r.TopologyLayer() == "":
		r.fail(at, "requires", "Koordinator knows levels by the names of layers in its ClusterNetworkTopology, not by "+
			"labels: give the layer's name, or list it in the Environment's topology with this label")
	case g.Is(job.GangVolcano) && r.Spec.Target == job.TargetTrainJob && level.Tier == nil:
		r.fail(at, "requires", "Trainer's controller hands Volcano the number of a tier alone, and fails without one: "+
			"list the level in the Environment's topology with its tier")
	}
}

// knownLevels lists what a level may be.
func (r *Validation) knownLevels() string {
	var names []string
	for _, l := range r.Origin.Levels {
		names = append(names, fmt.Sprintf("%s (%s)", l.Name, l.Label))
	}
	for _, l := range job.BuiltinLevels {
		names = append(names, l.Name)
	}
	text := "one of " + strings.Join(names, ", ") + ", or the key of a node label such as example.com/rack"
	if len(r.Origin.Levels) == 0 {
		text += "; an Environment lists others in spec.topology"
	}
	return text
}

// rankedTargets are those whose pods say their rank in a way that tegen-scheduler reads: those of Indexed Jobs, and
// bare pods, each of which is rendered by itself.
var rankedTargets = []string{job.TargetJob, job.TargetPods, job.TargetJobSet, job.TargetTrainJob}

// topologySlice holds the slices against the workers, and against who can place slices.
func (r *Validation) topologySlice() {
	t, g, w := r.Spec.Topology(), r.Spec.Gang, &r.Spec.Workers
	if t == nil || t.Slice == 0 {
		return
	}
	const at = topologyAt + ".slice"
	refuse := func(format string, args ...any) { r.fail(at, "requires", format, args...) }
	switch alone := len(r.Spec.Components()) == 1; {
	case g.Is(job.GangKubernetes):
		refuse("a PodGroup of Kubernetes has one domain for all of its pods: leave it out, or use %s",
			"kueue, koordinator or tegen")
	case r.Spec.ExclusiveTopology():
		refuse("JobSet's controller gives each child Job a domain, and all workers are one: leave it out or use kueue")
	case g.Is(job.GangVolcano) && r.Spec.Target != job.TargetVCJob:
		refuse("Volcano tells slices apart by a label of the pods, which no controller but that of its own Job gives " +
			"them: use target vcjob, or scheduler kueue, koordinator or tegen")
	case g.Is(job.GangVolcano) && w.Min < w.Max:
		refuse("Volcano's Job has a fixed number of slices, and this one is elastic (min %d, max %d): leave it out, "+
			"or make them equal", w.Min, w.Max)
	case g.Is(job.GangKoordinator) && !alone:
		refuse("Koordinator counts the pods of all roles in a domain, the %s among them: leave it out, or use tegen",
			r.Spec.Components()[0])
	case g.Is(job.GangTegen) && !slices.Contains(rankedTargets, r.Spec.Target):
		refuse("tegen-scheduler tells slices apart by the index of an Indexed Job, which pods of target %s lack: "+
			"leave it out, or use target %s", r.Spec.Target, job.TargetJob)
	case g.Is(job.GangKueue) && w.Master:
		refuse("Kueue counts the slices of the Master and of the other workers apart: leave out workers.master")
	case w.Replicas%t.Slice != 0:
		r.fail(at, "order", "%d does not divide spec.workers.replicas %d: every slice must be whole", t.Slice,
			w.Replicas)
	case g.MinAvailable%t.Slice != 0:
		r.fail(at, "order", "%d does not divide spec.gang.minAvailable %d: every slice must be whole", t.Slice,
			g.MinAvailable)
	}
}

// topologyAnnotations are keys of pods by which schedulers read a topology.
var topologyAnnotations = []string{
	"kueue.x-k8s.io/podset-", "gang.scheduling.koordinator.sh/network-topology-spec", "gang.tegen.dev/topology-slice",
}

// topologyKeys refuses a second topology in the pods' templates. Without gang.topology they are the author's business,
// since some of Kueue's say what it cannot.
func (r *Validation) topologyKeys() {
	if r.Spec.Topology() == nil {
		return
	}
	for _, p := range r.patches() {
		if p.role == job.RoleLauncher && r.Spec.Gang.Is(job.GangKueue) {
			continue // Kueue places it by itself, and gang.topology says nothing of it
		}
		mapping := p.at + ".metadata.annotations"
		n := r.Root.Below(strings.Split(mapping, ".")...)
		if n == nil {
			continue
		}
		for _, e := range n.Fields {
			if slices.ContainsFunc(topologyAnnotations, func(k string) bool { return strings.HasPrefix(e.Key, k) }) {
				r.failKey(mapping, e.Key, "reserved", "is set by spec.gang.topology")
			}
		}
	}
}
