package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialect is what a gang scheduler can be told.
type dialect struct {
	fields  []string      // of #Gang, beside scheduler, name, minAvailable and priority
	longest time.Duration // that its wait may be
	why     string        // where that limit comes from
}

var dialects = map[string]dialect{
	GangKoordinator:  {[]string{"mode", "groups", "waitTimeout", "matchPolicy"}, 25 * time.Minute, "that Koordinator handles"},
	GangTegen:        {[]string{"mode", "groups", "waitTimeout", "matchPolicy"}, 15 * time.Minute, "that kube-scheduler lets a placed pod wait"},
	GangCoscheduling: {[]string{"waitTimeout"}, 15 * time.Minute, "that kube-scheduler lets a placed pod wait"},
	GangVolcano:      {[]string{"queue"}, 0, ""},
	GangKueue:        {[]string{"queue"}, 0, ""},
	GangKubernetes:   {nil, 0, ""},
}

// active says whether the job asks for a gang at all.
func (g *Gang) active() bool { return g != nil && g.Scheduler != GangNone }

// gang holds the numbers of a gang against those of the workers.
func (r *ruling) gang() {
	g := r.Spec.Gang
	if !g.active() {
		return
	}
	w := &r.Spec.Workers
	switch {
	case g.MinAvailable > w.Replicas:
		r.fail("spec.gang.minAvailable", "order", "%d is above spec.workers.replicas %d: the gang could never start", g.MinAvailable, w.Replicas)
	case g.MinAvailable < w.Min:
		r.fail("spec.gang.minAvailable", "order", "%d is below spec.workers.min %d: the pods placed could never rendezvous", g.MinAvailable, w.Min)
	}
	if w.Min < w.Max && g.MatchPolicy != "waiting-and-running" {
		r.fail("spec.gang.matchPolicy", "requires", "an elastic job needs waiting-and-running: %s leaves workers that join later outside the gang", g.MatchPolicy)
	}
	if g.Scheduler == GangKueue && g.MinAvailable < w.Replicas {
		r.fail("spec.gang.minAvailable", "requires", "Kueue admits all %d workers or none: set workers.min to %d, or use another scheduler", w.Replicas, w.Replicas)
	}
}

// gangDialect holds what is asked against what the scheduler can be told.
func (r *ruling) gangDialect() {
	g := r.Spec.Gang
	if !g.active() {
		return
	}
	d := dialects[g.Scheduler]
	for _, field := range []string{"mode", "groups", "waitTimeout", "matchPolicy", "queue"} {
		if r.given("spec.gang."+field) && !slices.Contains(d.fields, field) {
			r.fail("spec.gang."+field, "requires", "gang scheduler %s knows none; %s does", g.Scheduler, strings.Join(dialectsWith(field), ", "))
		}
	}
	if d.longest != 0 && g.WaitTimeout.Duration > d.longest {
		r.fail("spec.gang.waitTimeout", "range", "%s is above the %dm %s", short(g.WaitTimeout), int(d.longest.Minutes()), d.why)
	}
	if len(g.Groups) > 0 && !slices.Contains(g.Groups, r.gangID()) {
		r.fail("spec.gang.groups", "requires", "the group must hold this gang too: add %s", r.gangID())
	}
	if g.Priority != "" && g.Scheduler != GangKueue && r.Spec.Placement.PriorityClass != "" && r.Spec.Placement.PriorityClass != g.Priority {
		r.fail("spec.gang.priority", "order", "%s is not spec.placement.priorityClass %s: all pods of a gang share one priority", g.Priority, r.Spec.Placement.PriorityClass)
	}
	switch g.Scheduler {
	case GangKueue:
		if g.Queue == "" {
			r.fail("spec.gang.queue", "required", "required field is missing: the LocalQueue in which the job waits")
		}
		if r.given("spec.suspend") {
			r.fail("spec.suspend", "requires", "Kueue suspends the job until it is admitted and would undo this: leave it out, or stop the queue (stopPolicy)")
		}
	case GangKubernetes:
		r.gangVersion()
	}
}

// gangVersion knows the minor releases whose API differs (KEP-4671): v1alpha2 in 1.36, v1beta1 in 1.37.
func (r *ruling) gangVersion() {
	version := r.Spec.KubernetesVersion
	_, text, _ := strings.Cut(version, ".")
	minor, _ := strconv.Atoi(text)
	switch {
	case version == "":
		r.fail("spec.kubernetesVersion", "required", "required field is missing: gang scheduler kubernetes has another API in each minor release, \"1.36\" or \"1.37\"")
	case minor < 36:
		r.fail("spec.kubernetesVersion", "range", "gang scheduler kubernetes needs 1.36 at least, not %s: use koordinator, coscheduling or volcano", version)
	case minor > 37:
		r.fail("spec.kubernetesVersion", "range", "the gang API of %s is not known here yet: 1.36 or 1.37", version)
	}
}

func dialectsWith(field string) (names []string) {
	for name, d := range dialects {
		if slices.Contains(d.fields, field) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// GangName is the name of the job's gang within its namespace.
func (j *Job) GangName() string {
	if g := j.Spec.Gang; g != nil && g.Name != "" {
		return g.Name
	}
	return j.Metadata.Name
}

func (r *ruling) gangID() string { return r.Metadata.Namespace + "/" + r.GangName() }

// sharedGangs refuses two jobs of one gang, whose pods a scheduler would count as one job's. Gangs of different names
// are placed together by groups.
func sharedGangs(jobs []loaded, roots []*node) (errs Errors) {
	first := map[string]int{}
	for i, l := range jobs {
		if l.job == nil || !l.job.Spec.Gang.active() || l.unsound.touch("metadata") || l.unsound.touch("gang") {
			continue
		}
		id := l.job.Metadata.Namespace + "/" + l.job.GangName()
		if j, ok := first[id]; ok && !sameGroup(jobs[j].job.Spec.Gang, l.job.Spec.Gang) {
			errs = append(errs, roots[i].fail("spec.gang.name", "duplicate", "%q is the gang of job %q already; give each a name of its own and join them by groups", id, jobs[j].job.Metadata.Name))
			continue
		}
		first[id] = i
	}
	return errs
}

// sameGroup says whether two jobs mean to be one gang: both declare the same group, and agree about the gang, of which
// a scheduler believes the first pod that it sees.
func sameGroup(a, b *Gang) bool {
	return len(a.Groups) > 0 && fmt.Sprint(*a) == fmt.Sprint(*b)
}
