package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var topologyRules = []Rule{
	part.Of4(topologyScheduler, part.Gang, part.Topology, part.Target, part.ExclusiveTopology),
	part.Of5(topologyLevel, part.Gang, part.Target, part.TopologyLevel, part.TopologyLayer, part.Levels),
	part.Of5(topologySlice, part.Gang, part.Workers, part.Target, part.Components, part.ExclusiveTopology),
}

const topologyAt = "spec.gang.topology"

// topologyScheduler refuses a topology that the gang's scheduler, or who makes its PodGroup, has no word for.
func topologyScheduler(p *Problems, g *job.Gang, t *job.Topology, target string, exclusive bool) {
	if t == nil {
		return
	}
	none := func(reason string) { p.fail(topologyAt, "requires", "%s: use %s", reason, g.OtherTopologies()) }
	switch {
	case g.Scheduler == job.GangNone && target != job.TargetJobSet:
		none("without a gang scheduler pods are placed one by one, wherever there is room; target jobset alone has a " +
			"controller that keeps them in one domain")
	case g.Is(job.GangCoscheduling):
		none("the PodGroup of coscheduling has no topology, and the network plugins beside it weigh single pods of " +
			"an AppGroup")
	case g.Is(job.GangVolcano) && target == job.TargetMPIJob:
		none("the MPI operator makes the PodGroup, and its schedulingPolicy has no topology")
	}
	if t.Required() {
		return
	}
	always := func(who string) {
		p.fail(topologyAt+".mode", "requires", "%s places the workers in one domain or not at all: leave it out, or "+
			"use koordinator, kueue, tegen or volcano", who)
	}
	switch {
	case g.Is(job.GangKubernetes):
		always("Kubernetes itself")
	case exclusive:
		always("JobSet's controller")
	case g.Is(job.GangKueue, job.GangKoordinator) && t.Slice > 0:
		p.fail(topologyAt+".mode", "requires", "%s gives each slice a domain or places none: leave it out, or leave "+
			"out the slice", g.Scheduler)
	}
}

// topologyLevel finds the level. Koordinator and Volcano keep levels themselves, under names that no Environment needs
// to know; all others know labels of nodes.
func topologyLevel(p *Problems, g *job.Gang, target string, level job.Level, layer string, known []job.Level) {
	if g == nil || g.Topology == nil {
		return
	}
	const at = topologyAt + ".level"
	switch {
	case level.Label == "" && (!g.Is(job.GangKoordinator, job.GangVolcano) || len(known) > 0):
		p.fail(at, "requires", "%s is no level that is known here: %s", g.Topology.Level, levelNames(known))
	case g.Is(job.GangKoordinator) && layer == "":
		p.fail(at, "requires", "Koordinator knows levels by the names of layers in its ClusterNetworkTopology, not by "+
			"labels: give the layer's name, or list it in the Environment's topology with this label")
	case g.Is(job.GangVolcano) && target == job.TargetTrainJob && level.Tier == nil:
		p.fail(at, "requires", "Trainer's controller hands Volcano the number of a tier alone, and fails without one: "+
			"list the level in the Environment's topology with its tier")
	}
}

// levelNames lists what a level may be: one of an Environment's, or another.
func levelNames(known []job.Level) string {
	var names []string
	for _, l := range known {
		names = append(names, fmt.Sprintf("%s (%s)", l.Name, l.Label))
	}
	for _, l := range job.BuiltinLevels {
		names = append(names, l.Name)
	}
	text := "one of " + strings.Join(names, ", ") + ", or the key of a node label such as example.com/rack"
	if len(known) == 0 {
		text += "; an Environment lists others in spec.topology"
	}
	return text
}

// rankedTargets are those whose pods say their rank in a way that tegen-scheduler reads: those of Indexed Jobs, and
// bare pods, each of which is rendered by itself.
var rankedTargets = []string{job.TargetJob, job.TargetPods, job.TargetJobSet, job.TargetTrainJob}

// topologySlice holds the slices against the workers, and against who can place slices.
func topologySlice(
	p *Problems, g *job.Gang, w *job.Workers, target string, components []string, exclusive bool,
) {
	if g == nil || g.Topology == nil || g.Topology.Slice == 0 {
		return
	}
	t := g.Topology
	const at = topologyAt + ".slice"
	refuse := func(format string, args ...any) { p.fail(at, "requires", format, args...) }
	switch alone := len(components) == 1; {
	case g.Is(job.GangKubernetes):
		refuse("a PodGroup of Kubernetes has one domain for all of its pods: leave it out, or use %s",
			"kueue, koordinator or tegen")
	case exclusive:
		refuse("JobSet's controller gives each child Job a domain, and all workers are one: leave it out or use kueue")
	case g.Is(job.GangVolcano) && target != job.TargetVCJob:
		refuse("Volcano tells slices apart by a label of the pods, which no controller but that of its own Job gives " +
			"them: use target vcjob, or scheduler kueue, koordinator or tegen")
	case g.Is(job.GangVolcano) && w.Min < w.Max:
		refuse("Volcano's Job has a fixed number of slices, and this one is elastic (min %d, max %d): leave it out, "+
			"or make them equal", w.Min, w.Max)
	case g.Is(job.GangKoordinator) && !alone:
		refuse("Koordinator counts the pods of all roles in a domain, the %s among them: leave it out, or use tegen",
			components[0])
	case g.Is(job.GangTegen) && !slices.Contains(rankedTargets, target):
		refuse("tegen-scheduler tells slices apart by the index of an Indexed Job, which pods of target %s lack: "+
			"leave it out, or use target %s", target, job.TargetJob)
	case g.Is(job.GangKueue) && w.Master:
		refuse("Kueue counts the slices of the Master and of the other workers apart: leave out workers.master")
	case w.Replicas%t.Slice != 0:
		p.fail(at, "order", "%d does not divide spec.workers.replicas %d: every slice must be whole", t.Slice,
			w.Replicas)
	case g.MinAvailable%t.Slice != 0:
		p.fail(at, "order", "%d does not divide spec.gang.minAvailable %d: every slice must be whole", t.Slice,
			g.MinAvailable)
	}
}

// topologyAnnotations are keys of pods by which schedulers read a topology.
var topologyAnnotations = []string{
	"kueue.x-k8s.io/podset-", "gang.scheduling.koordinator.sh/network-topology-spec", "gang.tegen.dev/topology-slice",
}

// topologyKeys refuses a second topology in the pods' templates. Without gang.topology they are the author's business,
// since some of Kueue's say what it cannot.
func topologyKeys(p *Problems, g *job.Gang, patches []patch) {
	if g == nil || g.Topology == nil {
		return
	}
	for _, patch := range patches {
		if patch.role == job.RoleLauncher && g.Is(job.GangKueue) {
			continue // Kueue places it by itself, and gang.topology says nothing of it
		}
		mapping := patch.at + ".metadata.annotations"
		n := p.Node(mapping)
		if n == nil {
			continue
		}
		for _, e := range n.Fields {
			if slices.ContainsFunc(topologyAnnotations, func(k string) bool { return strings.HasPrefix(e.Key, k) }) {
				p.failKey(mapping, e.Key, "reserved", "is set by spec.gang.topology")
			}
		}
	}
}
