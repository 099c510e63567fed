package job

import (
	"slices"
	"time"

	"github.com/tegen-dev/tegen/internal/names"
)

// Names of the gang schedulers, as job.cue has them.
const (
	GangNone         = "none"
	GangKoordinator  = "koordinator"
	GangCoscheduling = "coscheduling"
	GangVolcano      = "volcano"
	GangKueue        = "kueue"
	GangKubernetes   = "kubernetes"
	GangTegen        = "tegen"
)

// Dialect is how one gang scheduler is spoken to: what it can be told, and by which keys.
type Dialect struct {
	Name      string        // of spec.gang.scheduler
	Scheduler string        // the name that it installs itself under; "" where the cluster's own places the pods
	Keys      []string      // labels and annotations by which it knows a pod's gang, or a job's queue
	Fields    []string      // of #Gang, beside scheduler, name, minAvailable and priority
	Longest   time.Duration // that its wait may be
	Why       string        // where that limit comes from
	// Total says that it counts the pods of all roles together, and so cannot tell a worker from a server.
	Total bool
}

// permitLimit is how long kube-scheduler lets a plugin hold a placed pod (maxTimeout in
// pkg/scheduler/framework/runtime).
const permitLimit = 15 * time.Minute

// Dialects has a row for each, in the order of docs/support.md. generators/gang.go says how each is rendered.
var Dialects = []Dialect{
	{
		Name: GangKoordinator, Scheduler: "koord-scheduler", Keys: slices.Concat(koordinatorKeys, []string{
			"gang.scheduling.koordinator.sh/total-number", "pod-group.scheduling.sigs.k8s.io",
			"pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available",
			"pod-group.scheduling.sigs.k8s.io/match-policy",
		}),
		Fields:  []string{"mode", "groups", "waitTimeout", "matchPolicy", "topology"},
		Longest: 25 * time.Minute, Why: "that Koordinator handles", // koordinator#1919
	},
	{
		Name: GangCoscheduling, Scheduler: "scheduler-plugins-scheduler",
		Keys:    []string{"scheduling.x-k8s.io/pod-group"},
		Fields:  []string{"waitTimeout"},
		Longest: permitLimit, Why: "that kube-scheduler lets a placed pod wait", Total: true,
	},
	{
		Name: GangVolcano, Scheduler: "volcano", Keys: []string{
			"scheduling.k8s.io/group-name", "volcano.sh/task-spec", "scheduling.volcano.sh/group-name",
			"scheduling.volcano.sh/queue-name", "scheduling.volcano.sh/group-min-member",
		},
		Fields: []string{"queue", "topology"},
	},
	{
		Name: GangKueue, Keys: []string{
			"kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/managed",
			"kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count",
			"kueue.x-k8s.io/retriable-in-group",
		},
		Fields: []string{"queue", "topology"}, Total: true,
	},
	{Name: GangKubernetes, Fields: []string{"topology"}, Total: true},
	{
		Name: GangTegen, Scheduler: names.Scheduler, Keys: koordinatorKeys,
		Fields:  []string{"mode", "groups", "waitTimeout", "matchPolicy", "topology"},
		Longest: permitLimit, Why: "that kube-scheduler lets a placed pod wait",
	},
}

// koordinatorKeys are those that tegen-scheduler reads too.
var koordinatorKeys = []string{
	"gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available",
	"gang.scheduling.koordinator.sh/mode", "gang.scheduling.koordinator.sh/groups",
	"gang.scheduling.koordinator.sh/waiting-time", "gang.scheduling.koordinator.sh/match-policy",
}

// Dialect is the row of the gang's scheduler; an empty one where there is no gang.
func (g *Gang) Dialect() Dialect {
	if g != nil {
		for _, d := range Dialects {
			if d.Name == g.Scheduler {
				return d
			}
		}
	}
	return Dialect{}
}

// DialectsWhere names the dialects of which something holds, sorted.
func DialectsWhere(holds func(Dialect) bool) (names []string) {
	for _, d := range Dialects {
		if holds(d) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Active says whether a job asks for a gang at all.
func (g *Gang) Active() bool { return g != nil && g.Scheduler != GangNone }

// Is says whether the gang is one of these schedulers'.
func (g *Gang) Is(schedulers ...string) bool {
	return g != nil && slices.Contains(schedulers, g.Scheduler)
}

// SchedulerName is the name under which the gang's scheduler installs itself, "" where the cluster's own places pods.
func (g *Gang) SchedulerName() string {
	return g.Dialect().Scheduler
}

// SchedulerName is who places the pods: the author's word, or the gang's scheduler; "" is the cluster's default.
func (s *Spec) SchedulerName() string {
	if s.Placement.Scheduler != "" {
		return s.Placement.Scheduler
	}
	return s.Gang.SchedulerName()
}

// PodPriority is the PriorityClass of all pods, by which they are preempted too; Kueue keeps a class of its own.
func (s *Spec) PodPriority() string {
	if g := s.Gang; g.Active() && !g.Is(GangKueue) && g.Priority != "" {
		return g.Priority
	}
	return s.Placement.PriorityClass
}

// GangName is the name of the job's gang within its namespace.
func (j *Job) GangName() string {
	if g := j.Spec.Gang; g != nil && g.Name != "" {
		return g.Name
	}
	return j.Metadata.Name
}

// RoleGang is the name of the gang of one role, for schedulers that know one minimum a gang: the gang's own where there
// is one role only.
func (j *Job) RoleGang(role string) string {
	if len(j.Spec.Components()) == 1 {
		return j.GangName()
	}
	return j.GangName() + "-" + role
}

// KueuePartialKey is the annotation by which Kueue starts a Job with fewer workers than it asks for, but so many at
// least, where the quota is for no more.
const KueuePartialKey = "kueue.x-k8s.io/job-min-parallelism"

// GangKind is what the job's gang is, in which no two jobs may have one name; "" where it is named after the one object
// that it belongs to: Volcano's Job, with its uid, or what waits in Kueue.
func (s *Spec) GangKind() string {
	switch {
	case s.Gang.Is(GangKoordinator, GangTegen): // who read the same annotations
		return GangKoordinator
	case s.Target == TargetVCJob, s.Gang.Is(GangKueue) && s.Target != TargetPods:
		return ""
	}
	return s.Gang.Scheduler
}

// GangIDs are the job's gangs, sorted, as namespace/name: one, or one of each role for schedulers that know one minimum
// a gang.
func (j *Job) GangIDs() []string {
	if j.Spec.GangKind() != GangKoordinator {
		return []string{j.Metadata.Namespace + "/" + j.GangName()}
	}
	var out []string
	for _, role := range j.Spec.Components() {
		out = append(out, j.Metadata.Namespace+"/"+j.RoleGang(role))
	}
	slices.Sort(out)
	return out
}

// GangGroup is the gangs that are placed together or not at all: what the author says, or the job's own where it has
// several; sorted, since a scheduler tells groups apart by the list.
func (j *Job) GangGroup() []string {
	if g := j.Spec.Gang; g != nil && len(g.Groups) > 0 {
		return slices.Sorted(slices.Values(g.Groups))
	}
	if own := j.GangIDs(); len(own) > 1 {
		return own
	}
	return nil
}

// Groupers are the targets whose controllers make the PodGroup of a scheduler and put their pods into it, by name.
var Groupers = map[string][]string{
	TargetVCJob:    {GangVolcano},
	TargetTrainJob: {GangVolcano, GangCoscheduling}, // podGroupPolicy of its runtime
	// schedulingPolicy, where its operator was started with --gang-scheduling
	TargetMPIJob: {GangVolcano, GangCoscheduling},
}

// MakesPodGroup says whether the target's controller makes the gang's PodGroup itself.
func (s *Spec) MakesPodGroup() bool { return s.Gang.Is(Groupers[s.Target]...) }

// NamesGang says whether the gang has the job's name whatever its author wants: that of a controller's PodGroup, or of
// what waits in Kueue. Kubeflow's training operator makes a PodGroup too where it was started with
// --gang-scheduler-name, and moves the pods into it, so ours must be the same one.
func (s *Spec) NamesGang() bool {
	switch s.Target {
	case TargetPyTorchJob, TargetMXJob:
		return s.Gang.Is(GangVolcano, GangCoscheduling, GangKueue)
	case TargetPods:
		return false
	}
	return s.MakesPodGroup() || s.Gang.Is(GangKueue)
}
