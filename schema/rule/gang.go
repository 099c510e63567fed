package rule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

// shortestWait is what a gang needs at least to be placed at all.
const shortestWait = 10 * time.Second

var gangRules = []Rule{
	part.Of5(gangMinimum, part.Gang, part.Workers, part.Target, part.Unlaunched, countedTogether),
	part.Of2(gangMatch, part.Gang, part.Counts),
	part.Of1(gangFields, part.Gang),
	part.Of3(gangName, part.Gang, part.Target, part.NamesGang),
	part.Of1(gangQueue, part.Gang),
	part.Of2(gangVersion, part.Gang, part.KubernetesVersion),
	part.Of5(gangPartial, part.Gang, part.Counts, part.Target, part.Unlaunched, part.WorkloadAnnotations),
	part.Of2(gangScheduler, part.Gang, part.Scheduler),
	part.Of2(gangPriority, part.Gang, part.PriorityClass),
	part.Of2(gangGroup, part.Gang, part.GangIDs),
	part.Of0(foreignGang),
}

// countedTogether is a role whose pods the gang's scheduler counts together with the workers, "" where there is none.
var countedTogether = part.OfSpec("gang framework target mxnet.mode bytescheduler.mode workers.min groups",
	func(s *job.Spec) string {
		all := s.Components()
		if len(all) > 1 && s.Gang.Active() && (s.Gang.Dialect().Total || s.MakesPodGroup()) && !s.CountsTasks() {
			return all[0]
		}
		return ""
	})

// gangMinimum holds the minimum of a gang against the numbers of the workers.
func gangMinimum(p *Problems, g *job.Gang, w *job.Workers, target string, unlaunched bool, other string) {
	if !g.Active() {
		return
	}
	const at = "spec.gang.minAvailable"
	switch {
	case g.MinAvailable > w.Replicas:
		p.fail(at, "order", "%d is above spec.workers.replicas %d: the gang could never start", g.MinAvailable,
			w.Replicas)
	case g.MinAvailable < w.Min && !unlaunched: // whose pods are told of no others
		p.fail(at, "order", "%d is below spec.workers.min %d: the pods placed could never rendezvous", g.MinAvailable,
			w.Min)
	case g.MinAvailable == w.Replicas:
	case g.Scheduler == job.GangKueue:
		p.fail(at, "requires", "Kueue admits all %d workers or none, not %d: set it to %d, or use another scheduler",
			w.Replicas, g.MinAvailable, w.Replicas)
	case other != "":
		p.fail(at, "requires", "%s of target %s counts the pods of all roles together, so workers could stand in for "+
			"a %s: set it to %d, or use %s", g.Scheduler, target, other, w.Replicas, countsRoles(target))
	}
}

func gangMatch(p *Problems, g *job.Gang, w part.Count) {
	if g.Active() && w.Min < w.Max && g.MatchPolicy != "waiting-and-running" {
		p.fail("spec.gang.matchPolicy", "requires", "an elastic job needs waiting-and-running: %s leaves workers that "+
			"join later outside the gang", g.MatchPolicy)
	}
}

// countsRoles are the schedulers that know a minimum of each role. Volcano's PodGroup has one for each task
// (minTaskMember), which controllers that make it themselves leave out.
func countsRoles(target string) string {
	names := job.DialectsWhere(func(d job.Dialect) bool {
		return !d.Total && !slices.Contains(job.Groupers[target], d.Name)
	})
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// gangFields holds what is asked against what the scheduler can be told.
func gangFields(p *Problems, g *job.Gang) {
	if !g.Active() {
		return
	}
	d := g.Dialect()
	for _, field := range []string{"mode", "groups", "waitTimeout", "matchPolicy", "queue"} {
		if p.IsSet("spec.gang."+field) && !slices.Contains(d.Fields, field) {
			takers := job.DialectsWhere(func(d job.Dialect) bool { return slices.Contains(d.Fields, field) })
			p.fail("spec.gang."+field, "requires", "gang scheduler %s takes none: it is for %s", g.Scheduler,
				strings.Join(takers, " and "))
		}
	}
	switch wait := g.WaitTimeout; {
	case d.Longest == 0: // it has none
	case wait.Duration > d.Longest:
		p.fail("spec.gang.waitTimeout", "range", "%s is above the %dm %s", job.Short(wait), int(d.Longest.Minutes()),
			d.Why)
	case wait.Duration < shortestWait:
		p.fail("spec.gang.waitTimeout", "range",
			"%s is below %ds: to schedule the members alone takes seconds, and the gang would be given up each time",
			job.Short(wait), int(shortestWait.Seconds()))
	}
}

func gangName(p *Problems, g *job.Gang, target string, named bool) {
	if named && p.IsSet("spec.gang.name") {
		p.fail("spec.gang.name", "requires", "target %s under %s is known by the name of the job: leave it out",
			target, g.Scheduler)
	}
}

// gangQueue is what Kueue needs: it finds queue and priority in labels, and the job's suspension is its own means.
func gangQueue(p *Problems, g *job.Gang) {
	if !g.Is(job.GangKueue) {
		return
	}
	if g.Queue == "" {
		p.fail("spec.gang.queue", "required", "required field is missing: the LocalQueue in which the job waits")
	}
	for field, value := range map[string]string{"queue": g.Queue, "priority": g.Priority} {
		if len(value) > 63 {
			p.fail("spec.gang."+field, "range", "has %d characters: Kueue reads it from a label, which holds 63",
				len(value))
		}
	}
	if p.IsSet("spec.suspend") {
		p.fail("spec.suspend", "requires",
			"Kueue suspends the job until it is admitted and would undo this: leave it out; to suspend the job by "+
				"hand, set spec.active: false of its Workload")
	}
}

// gangPartial holds the number of workers that Kueue may start a Job with against those that can train.
func gangPartial(
	p *Problems, g *job.Gang, w part.Count, target string, unlaunched bool, annotations map[string]string,
) {
	text, ok := annotations[job.KueuePartialKey]
	if !ok || !g.Is(job.GangKueue) {
		return
	}
	const at = "spec.workload.annotations"
	least := w.Min
	if unlaunched {
		least = 1
	}
	switch n, err := strconv.ParseInt(text, 10, 32); {
	case target != job.TargetJob:
		p.failKey(at, job.KueuePartialKey, "requires", "Kueue reads it of target job alone: leave it out")
	case least == w.Replicas:
		p.failKey(at, job.KueuePartialKey, "requires",
			"fewer workers than spec.workers.min %d could never rendezvous: "+
				"leave it out, or lower the minimum", w.Min)
	case err != nil || int32(n) < least || int32(n) >= w.Replicas:
		p.failKey(at, job.KueuePartialKey, "range", "is %q: want a number from spec.workers.min %d to %d, one below "+
			"spec.workers.replicas", text, least, w.Replicas-1)
	}
}

// gangVersion knows the minor releases whose API differs (KEP-4671): v1alpha2 in 1.36, v1beta1 in 1.37.
func gangVersion(p *Problems, g *job.Gang, version string) {
	if !g.Is(job.GangKubernetes) {
		return
	}
	_, text, _ := strings.Cut(version, ".")
	minor, _ := strconv.Atoi(text)
	switch {
	case version == "":
		p.fail("spec.kubernetesVersion", "required",
			"required field is missing: gang scheduler kubernetes has another API in each minor release, \"1.36\" or "+
				"\"1.37\"")
	case minor < 36:
		p.fail("spec.kubernetesVersion", "range",
			"gang scheduler kubernetes needs 1.36 at least, not %s: use koordinator, coscheduling or volcano", version)
	case minor > 37:
		p.fail("spec.kubernetesVersion", "range", "the gang API of %s is not known here yet: 1.36 or 1.37", version)
	}
}

// gangScheduler keeps all pods of a gang with one scheduler. An author may name the gang's scheduler as the cluster
// calls it, which may even be default-scheduler, but not another gang scheduler.
func gangScheduler(p *Problems, g *job.Gang, scheduler string) {
	if !g.Active() {
		return
	}
	others := job.DialectsWhere(func(d job.Dialect) bool {
		return d.Scheduler != "" && d.Scheduler == scheduler && d.Name != g.Scheduler && g.Scheduler != job.GangKueue
	})
	for _, name := range others {
		p.fail("spec.placement.scheduler", "order",
			"%s is gang scheduler %s, which ignores gangs of %s: leave it out, "+
				"or give the name that %s runs under", scheduler, name, g.Scheduler, g.Scheduler)
	}
}

// gangPriority keeps all pods of a gang with one priority.
func gangPriority(p *Problems, g *job.Gang, class string) {
	if g.Active() && g.Priority != "" && g.Scheduler != job.GangKueue && class != "" && class != g.Priority {
		p.fail("spec.gang.priority", "order", "%s is not spec.placement.priorityClass %s: all pods of a gang share "+
			"one priority", g.Priority, class)
	}
}

// gangPods keeps the escape hatches from giving some pods of a gang another scheduler or priority.
func gangPods(p *Problems, g *job.Gang, patches []patch) {
	if !g.Active() {
		return
	}
	for _, patch := range patches {
		for _, field := range []string{"schedulerName", "priorityClassName", "priority", "schedulingGroup"} {
			if at := patch.at + ".spec." + field; job.Trains(patch.role) && p.IsSet(at) {
				p.fail(at, "reserved", "all pods of a gang have the same: it is set by spec.gang and spec.placement")
			}
		}
	}
}

// gangGroup holds the group against the gang.
func gangGroup(p *Problems, g *job.Gang, own []string) {
	if !g.Active() || len(g.Groups) == 0 {
		return
	}
	var missing []string
	for _, id := range own {
		if !slices.Contains(g.Groups, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		p.fail("spec.gang.groups", "requires", "the group must hold this gang too: add %s", strings.Join(missing, ", "))
	}
}

// isGangKey says whether some scheduler knows a pod's gang, or a job's queue, by a label or annotation.
func isGangKey(key string) bool {
	return slices.ContainsFunc(job.Dialects, func(d job.Dialect) bool { return slices.Contains(d.Keys, key) })
}

// foreignGang refuses those keys where they would declare a second gang, or a queue beside a field suspend: metadata
// and workload are of objects that tegen puts into a gang itself.
func foreignGang(p *Problems) {
	for _, mapping := range []string{
		"metadata.labels", "metadata.annotations", "spec.workload.labels", "spec.workload.annotations",
	} {
		refuseGangKeys(p, mapping)
	}
}

// patchedGang is foreignGang for pod templates, in which the keys are the author's business as long as no gang is asked
// for.
func patchedGang(p *Problems, g *job.Gang, patches []patch) {
	for _, patch := range patches {
		if g.Active() {
			refuseGangKeys(p, patch.at+".metadata.labels")
			refuseGangKeys(p, patch.at+".metadata.annotations")
		}
	}
}

func refuseGangKeys(p *Problems, mapping string) {
	n := p.Node(mapping)
	if n == nil {
		return
	}
	for _, e := range n.Fields {
		if isGangKey(e.Key) {
			p.failKey(mapping, e.Key, "reserved", "is set by spec.gang")
		}
	}
}

// gangsOf are the jobs with a gang of which all is known that rules between gangs read.
func gangsOf(jobs []Loaded) (indexes []int) {
	for i, l := range jobs {
		if l.Knows(part.Gang, part.GangIDs, part.Placement) && l.Job.Spec.Gang.Active() {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// SharedGangs refuses two jobs of one gang: a scheduler would count the pods of both towards the minimum of either.
func SharedGangs(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	type gang struct{ kind, id string }
	first := map[gang]int{}
	for _, i := range gangsOf(jobs) {
		tj := jobs[i].Job
		kind, remedy := tj.Spec.GangKind(), "give each a name of its own"
		if kind == "" {
			continue
		}
		if kind == job.GangKoordinator {
			remedy += " and join them by groups"
		}
		for _, id := range tj.GangIDs() {
			if j, ok := first[gang{kind, id}]; ok {
				errs = append(errs,
					roots[i].Errorf("spec.gang.name", "duplicate", "%q is the gang of job %q already; %s", id,
						jobs[j].Job.Metadata.Name, remedy))
				break
			}
			first[gang{kind, id}] = i
		}
	}
	return errs
}

// GangGroups refuses gangs of one group that do not agree which group that is, since a scheduler tells groups apart by
// their lists, or whose pods it could not place as one.
func GangGroups(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	owners := map[string]int{}
	for _, i := range gangsOf(jobs) {
		for _, id := range jobs[i].Job.GangIDs() {
			// the only kind that has groups
			if j, ok := owners[id]; !ok || jobs[j].Job.Spec.GangKind() != job.GangKoordinator {
				owners[id] = i
			}
		}
	}
	for _, i := range gangsOf(jobs) {
		group := jobs[i].Job.GangGroup()
		for _, id := range group {
			j, ok := owners[id]
			same := ok && slices.Equal(group, jobs[j].Job.GangGroup())
			if !ok || j == i || same && i < j { // both would say the same: the later one does
				continue
			}
			own, other := jobs[i].Job, jobs[j].Job
			unlike := unlikeGangs(&own.Spec, &other.Spec)
			for _, u := range unlike {
				errs = append(errs,
					roots[i].Errorf(u.path, "order",
						"%s, but job %q of the same group has %s: "+
							"all pods of a group have one scheduler, mode and priority",
						cmp.Or(u.own, "none"), other.Metadata.Name, cmp.Or(u.other, "none")))
			}
			if !same && len(unlike) == 0 {
				errs = append(errs,
					roots[i].Errorf("spec.gang.groups", "requires",
						"%s is in this group, but job %q is in another or none: give both the same groups", id,
						other.Metadata.Name))
			}
			if !same || len(unlike) > 0 {
				break
			}
		}
	}
	return errs
}

// unlike is a field of a job that differs from another job's.
type unlike struct{ path, own, other string }

// unlikeGangs are the differences between two jobs for which a scheduler cannot place them as one group.
func unlikeGangs(a, b *job.Spec) (out []unlike) {
	if a.Gang.Scheduler != b.Gang.Scheduler { // the rest follows from it
		return []unlike{{"spec.gang.scheduler", a.Gang.Scheduler, b.Gang.Scheduler}}
	}
	priority := "spec.gang.priority"
	if a.Gang.Priority == "" && a.Placement.PriorityClass != "" {
		priority = "spec.placement.priorityClass"
	}
	for _, u := range []unlike{
		{"spec.placement.scheduler", a.SchedulerName(), b.SchedulerName()},
		{"spec.gang.mode", a.Gang.Mode, b.Gang.Mode},
		{priority, a.PodPriority(), b.PodPriority()},
	} {
		if u.own != u.other {
			out = append(out, u)
		}
	}
	return out
}
