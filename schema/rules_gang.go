package schema

import (
	"slices"
	"strconv"
	"strings"
)

var gangRules = []rule{
	{
		(*validation).gang,
		"gang framework launcher target mxnet.mode bytescheduler.mode workers groups",
	},
	{(*validation).gangDialect, "gang target kubernetesVersion suspend"},
	{(*validation).gangPartial, "gang framework target launcher workers workload.annotations"},
	{(*validation).gangPlacement, "gang placement.scheduler placement.priorityClass podTemplate roles"},
	{(*validation).gangGroup, "gang framework mxnet.mode bytescheduler.mode metadata"},
	{(*validation).foreignGang, "gang metadata workload podTemplate roles"},
}

// gang holds the numbers of a gang against those of the workers.
func (r *validation) gang() {
	g := r.Spec.Gang
	if !g.Active() {
		return
	}
	const at = "spec.gang.minAvailable"
	w := &r.Spec.Workers
	switch {
	case g.MinAvailable > w.Replicas:
		r.fail(at, "order", "%d is above spec.workers.replicas %d: the gang could never start", g.MinAvailable,
			w.Replicas)
	case g.MinAvailable < w.Min && !r.Spec.Unlaunched(): // whose pods are told of no others
		r.fail(at, "order", "%d is below spec.workers.min %d: the pods placed could never rendezvous", g.MinAvailable,
			w.Min)
	case g.MinAvailable == w.Replicas:
	case g.Scheduler == GangKueue:
		r.fail(at, "requires", "Kueue admits all %d workers or none, not %d: set it to %d, or use another scheduler",
			w.Replicas, g.MinAvailable, w.Replicas)
	case len(r.Spec.Components()) > 1 && (g.dialect().total || r.Spec.MakesPodGroup()) && !r.Spec.countsTasks():
		r.fail(at, "requires",
			"%s of target %s counts the pods of all roles together, so workers could stand in for a %s: set it to "+
				"%d, or use %s",
			g.Scheduler, r.Spec.Target, r.Spec.Components()[0], w.Replicas, r.countsRoles())
	}
	if w.Min < w.Max && g.MatchPolicy != "waiting-and-running" {
		r.fail("spec.gang.matchPolicy", "requires",
			"an elastic job needs waiting-and-running: %s leaves workers that join later outside the gang",
			g.MatchPolicy)
	}
}

// countsRoles are the schedulers that know a minimum of each role. Volcano's PodGroup has one for each task
// (minTaskMember), which controllers that make it themselves leave out.
func (r *validation) countsRoles() string {
	names := dialectsWhere(func(d Dialect) bool {
		return !d.total && !slices.Contains(groupers[r.Spec.Target], d.Name)
	})
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// gangDialect holds what is asked against what the scheduler can be told.
func (r *validation) gangDialect() {
	g := r.Spec.Gang
	if !g.Active() {
		return
	}
	d := g.dialect()
	for _, field := range []string{"mode", "groups", "waitTimeout", "matchPolicy", "queue"} {
		if r.IsSet("spec.gang."+field) && !slices.Contains(d.Fields, field) {
			takers := dialectsWhere(func(d Dialect) bool { return slices.Contains(d.Fields, field) })
			r.fail("spec.gang."+field, "requires", "gang scheduler %s takes none: it is for %s", g.Scheduler,
				strings.Join(takers, " and "))
		}
	}
	switch wait := g.WaitTimeout; {
	case d.longest == 0: // it has none
	case wait.Duration > d.longest:
		r.fail("spec.gang.waitTimeout", "range", "%s is above the %dm %s", short(wait), int(d.longest.Minutes()), d.why)
	case wait.Duration < shortestWait:
		r.fail("spec.gang.waitTimeout", "range",
			"%s is below %ds: to schedule the members alone takes seconds, and the gang would be given up each time",
			short(wait), int(shortestWait.Seconds()))
	}
	if r.Spec.namesGang() && r.IsSet("spec.gang.name") {
		r.fail("spec.gang.name", "requires", "target %s under %s is known by the name of the job: leave it out",
			r.Spec.Target, g.Scheduler)
	}
	switch g.Scheduler {
	case GangKueue:
		r.gangQueue()
	case GangKubernetes:
		r.gangVersion()
	}
}

// gangQueue is what Kueue needs: it finds queue and priority in labels, and the job's suspension is its own means.
func (r *validation) gangQueue() {
	g := r.Spec.Gang
	if g.Queue == "" {
		r.fail("spec.gang.queue", "required", "required field is missing: the LocalQueue in which the job waits")
	}
	for field, value := range map[string]string{"queue": g.Queue, "priority": g.Priority} {
		if len(value) > 63 {
			r.fail("spec.gang."+field, "range", "has %d characters: Kueue reads it from a label, which holds 63",
				len(value))
		}
	}
	if r.IsSet("spec.suspend") {
		r.fail("spec.suspend", "requires",
			"Kueue suspends the job until it is admitted and would undo this: leave it out; to suspend the job by "+
				"hand, set spec.active: false of its Workload")
	}
}

// gangPartial holds the number of workers that Kueue may start a Job with against those that can train.
func (r *validation) gangPartial() {
	text, ok := r.Spec.Workload.Annotations[KueuePartialKey]
	if !ok || !r.Spec.Gang.Is(GangKueue) {
		return
	}
	const at = "spec.workload.annotations"
	w := &r.Spec.Workers
	least := w.Min
	if r.Spec.Unlaunched() {
		least = 1
	}
	switch n, err := strconv.ParseInt(text, 10, 32); {
	case r.Spec.Target != TargetJob:
		r.failKey(at, KueuePartialKey, "requires", "Kueue reads it of target job alone: leave it out")
	case least == w.Replicas:
		r.failKey(at, KueuePartialKey, "requires", "fewer workers than spec.workers.min %d could never rendezvous: "+
			"leave it out, or lower the minimum", w.Min)
	case err != nil || int32(n) < least || int32(n) >= w.Replicas:
		r.failKey(at, KueuePartialKey, "range", "is %q: want a number from spec.workers.min %d to %d, one below "+
			"spec.workers.replicas", text, least, w.Replicas-1)
	}
}

// gangVersion knows the minor releases whose API differs (KEP-4671): v1alpha2 in 1.36, v1beta1 in 1.37.
func (r *validation) gangVersion() {
	version := r.Spec.KubernetesVersion
	_, text, _ := strings.Cut(version, ".")
	minor, _ := strconv.Atoi(text)
	switch {
	case version == "":
		r.fail("spec.kubernetesVersion", "required",
			"required field is missing: gang scheduler kubernetes has another API in each minor release, \"1.36\" or "+
				"\"1.37\"")
	case minor < 36:
		r.fail("spec.kubernetesVersion", "range",
			"gang scheduler kubernetes needs 1.36 at least, not %s: use koordinator, coscheduling or volcano", version)
	case minor > 37:
		r.fail("spec.kubernetesVersion", "range", "the gang API of %s is not known here yet: 1.36 or 1.37", version)
	}
}

// gangPlacement keeps all pods of a gang with one scheduler and one priority. An author may name the gang's scheduler
// as the cluster calls it, which may even be default-scheduler, but not another gang scheduler.
func (r *validation) gangPlacement() {
	g, p := r.Spec.Gang, &r.Spec.Placement
	if !g.Active() {
		return
	}
	others := dialectsWhere(func(d Dialect) bool {
		return d.Scheduler != "" && d.Scheduler == p.Scheduler && d.Name != g.Scheduler && g.Scheduler != GangKueue
	})
	for _, name := range others {
		r.fail("spec.placement.scheduler", "order",
			"%s is gang scheduler %s, which ignores gangs of %s: leave it out, "+
				"or give the name that %s runs under", p.Scheduler, name, g.Scheduler, g.Scheduler)
	}
	if g.Priority != "" && g.Scheduler != GangKueue && p.PriorityClass != "" && p.PriorityClass != g.Priority {
		r.fail("spec.gang.priority", "order",
			"%s is not spec.placement.priorityClass %s: all pods of a gang share one priority", g.Priority,
			p.PriorityClass)
	}
	for _, patch := range r.patches() {
		for _, field := range []string{"schedulerName", "priorityClassName", "priority", "schedulingGroup"} {
			if at := patch.at + ".spec." + field; Trains(patch.role) && r.IsSet(at) {
				r.fail(at, "reserved", "all pods of a gang have the same: it is set by spec.gang and spec.placement")
			}
		}
	}
}

// gangGroup holds the group against the gang.
func (r *validation) gangGroup() {
	g := r.Spec.Gang
	if !g.Active() || len(g.Groups) == 0 {
		return
	}
	var missing []string
	for _, own := range r.GangIDs() {
		if !slices.Contains(g.Groups, own) {
			missing = append(missing, own)
		}
	}
	if len(missing) > 0 {
		r.fail("spec.gang.groups", "requires", "the group must hold this gang too: add %s", strings.Join(missing, ", "))
	}
}

// isGangKey says whether some scheduler knows a pod's gang, or a job's queue, by a label or annotation.
func isGangKey(key string) bool {
	return slices.ContainsFunc(Dialects, func(d Dialect) bool { return slices.Contains(d.Keys, key) })
}

// foreignGang refuses those keys where they would declare a second gang, or a queue beside a field suspend. Those of
// metadata and workload land on objects that tegen puts into a gang itself; in a pod template they are the author's
// business as long as no gang is asked for.
func (r *validation) foreignGang() {
	mappings := []string{
		"metadata.labels", "metadata.annotations", "spec.workload.labels", "spec.workload.annotations",
	}
	if r.Spec.Gang.Active() {
		for _, p := range r.patches() {
			mappings = append(mappings, p.at+".metadata.labels", p.at+".metadata.annotations")
		}
	}
	for _, mapping := range mappings {
		n := r.Root
		for name := range strings.SplitSeq(mapping, ".") {
			if n = n.Field(name); n == nil {
				break
			}
		}
		if n == nil {
			continue
		}
		for _, e := range n.Fields {
			if isGangKey(e.Key) {
				r.failKey(mapping, e.Key, "reserved", "is set by spec.gang")
			}
		}
	}
}
