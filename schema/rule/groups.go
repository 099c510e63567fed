package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
)

// GroupItems are the groups of a job's tree that are mappings, with where they stand.
func GroupItems(spec *structural.Node) map[int]*structural.Node {
	all := map[int]*structural.Node{}
	if list := spec.Below("groups"); list != nil {
		for i, item := range list.Items {
			if item.Kind == yamldoc.Map {
				all[i] = item
			}
		}
	}
	return all
}

var groupRules = []oldRule{
	{(*Validation).groupNames, "groups"},
	{(*Validation).groupPrograms, "groups"},
	{(*Validation).groupEnvironment, "groups env"},
	{(*Validation).groupAccelerators, "groups"},
	{(*Validation).startOrder, "groups workers.after"},
	{(*Validation).orderInGang, "groups workers.after gang framework target"},
	{(*Validation).groupsInQueue, "groups gang framework target"},
	{(*Validation).success, "groups success"},
	{(*Validation).coordinator, "groups coordinator workers.replicas workers.min workers.max"},
	{(*Validation).restartAll, "failure groups target"},
	{(*Validation).countedTasks, "groups workers target failure success"},
}

// ReservedGroup says whether tegen calls objects of its own by a name, so that no group may have it.
func ReservedGroup(name string) bool {
	group := definition.Job().Field("spec").Schema.Field("groups").Schema.Elem.Field("name").Schema
	return name != job.RoleWorker && group.Refusal(name) == "reserved"
}

func (r *Validation) groupNames() {
	names := r.Spec.GroupNames()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			r.fail(fmt.Sprintf("spec.groups[%d].name", i), "duplicate", "%s is the name of another group already", name)
		}
	}
}

// groupPrograms refuses a group that would run the entrypoint of the workers' image without a word.
func (r *Validation) groupPrograms() {
	for i, g := range r.Spec.Groups {
		if len(g.Command)+len(g.Args) == 0 && g.Image == "" {
			r.fail(fmt.Sprintf("spec.groups[%d]", i), "requires",
				"nothing says what group %s runs: give a command, args, or an image of its own", g.Name)
		}
	}
}

// groupEnvironment refuses variables that are there twice, and the names of the groups' hosts.
func (r *Validation) groupEnvironment() {
	hosts := map[string]bool{}
	for _, name := range append([]string{job.RoleWorker}, r.Spec.GroupNames()...) {
		hosts[job.HostVariable(name)] = len(r.Spec.Groups) > 0
	}
	check := func(at string, env []job.Env, duplicates bool) {
		seen := map[string]bool{}
		for i, e := range env {
			switch at := fmt.Sprintf("%s.env[%d].name", at, i); {
			case hosts[e.Name]:
				r.fail(at, "reserved", "%s is set by tegen: the host name of a group's first pod", e.Name)
			case duplicates && seen[e.Name]:
				r.fail(at, "duplicate", "%s is set twice", e.Name)
			case duplicates && e.Name == "CHECKPOINT_DIR" && r.Spec.Checkpoint != nil:
				r.fail(at, "reserved", "CHECKPOINT_DIR is set by spec.checkpoint")
			}
			seen[e.Name] = true
		}
	}
	check("spec", r.Spec.Env, false)
	for i, g := range r.Spec.Groups {
		check(fmt.Sprintf("spec.groups[%d]", i), g.Env, true)
	}
}

// groupAccelerators is accelerators of groups.
func (r *Validation) groupAccelerators() {
	items := GroupItems(r.Root.Below("spec"))
	for i, g := range r.Spec.Groups {
		at := fmt.Sprintf("spec.groups[%d].resources", i)
		if missing := r.unsaid(at, items[i].Below("resources")); g.Resources.GPU > 0 && len(missing) > 0 {
			r.fail(at+".gpu", "requires", "%d of %s without %s: write how much a pod of group %s needs, or none "+
				"for no limit; an Environment may say it for each accelerator, in accelerator.each", g.Resources.GPU,
				g.Resources.GPUResource, strings.Join(missing, " and "), g.Name)
		}
	}
}

// startOrder holds what is started after what.
func (r *Validation) startOrder() {
	r.startAfter(job.RoleWorker, "spec.workers.after", r.Spec.Workers.After)
	for i, g := range r.Spec.Groups {
		r.startAfter(g.Name, fmt.Sprintf("spec.groups[%d].after", i), g.After)
	}
}

func (r *Validation) startAfter(name, at string, after []job.After) {
	known := append([]string{job.RoleWorker}, r.Spec.GroupNames()...)
	var before []string
	for i, a := range after {
		at := fmt.Sprintf("%s[%d].group", at, i)
		switch {
		case !slices.Contains(known, a.Group):
			r.fail(at, "unknown", "there is no group %s: one of %s", a.Group, strings.Join(known, ", "))
		case slices.Contains(before, a.Group):
			r.fail(at, "duplicate", "%s is listed twice", a.Group)
		case a.Group == name:
			r.fail(at, "order", "%s would wait for itself: leave it out", name)
		case r.waitsFor(a.Group, name, nil):
			r.fail(at, "order", "%s waits for %s already, so that neither would ever start: leave one of the two out",
				a.Group, name)
		}
		before = append(before, a.Group)
	}
}

// waitsFor says whether a group waits for another one, by others too, or is that one.
func (r *Validation) waitsFor(name, other string, seen []string) bool {
	if name == other {
		return true
	}
	if slices.Contains(seen, name) {
		return false
	}
	return slices.ContainsFunc(r.Spec.AfterOf(name), func(a job.After) bool {
		return r.waitsFor(a.Group, other, append(seen, name))
	})
}

// orderInGang refuses a gang of pods that are made only when others of it run. Kueue admits a JobSet before any pod is
// made, and Volcano's own Job counts those alone that wait for nothing.
func (r *Validation) orderInGang() {
	g := r.Spec.Gang
	if !g.Active() || !r.Spec.Ordered() || g.Is(job.GangKueue) || r.Spec.Target == job.TargetVCJob {
		return
	}
	r.fail("spec.gang.scheduler", "requires", "%s places all pods of the job or none, and some of them are made only "+
		"when others run (after): leave after out, or use kueue", g.Scheduler)
}

// groupsInQueue: Kueue admits Jobs one by one, so that a part of the job would hold what the others wait for.
func (r *Validation) groupsInQueue() {
	if r.Spec.Gang.Is(job.GangKueue) && r.Spec.Target == job.TargetJob && len(r.Spec.Groups) > 0 {
		r.fail("spec.gang.scheduler", "requires", "each group is a Job of its own, and Kueue admits Jobs one by one: "+
			"use target jobset, which Kueue admits as a whole")
	}
}

func (r *Validation) success() {
	if r.Spec.Success == nil {
		return
	}
	known := append([]string{job.RoleWorker}, r.Spec.GroupNames()...)
	for i, name := range r.Spec.Success.Groups {
		if !slices.Contains(known, name) {
			r.fail(fmt.Sprintf("spec.success.groups[%d]", i), "unknown", "there is no group %s: one of %s", name,
				strings.Join(known, ", "))
		}
	}
}

func (r *Validation) coordinator() {
	c, w := r.Spec.Coordinator, &r.Spec.Workers
	if c == nil {
		return
	}
	count := min(w.Replicas, w.Min) // any other may be missing
	if g := r.Spec.Group(c.Group); g != nil {
		count = g.Replicas
	} else if c.Group != job.RoleWorker {
		r.fail("spec.coordinator.group", "unknown", "there is no group %s: one of %s", c.Group,
			strings.Join(append([]string{job.RoleWorker}, r.Spec.GroupNames()...), ", "))
		return
	}
	if c.Index >= count {
		r.fail("spec.coordinator.index", "range", "group %s has %d pods that are always there, counted from 0: %d is "+
			"none of them", c.Group, count, c.Index)
	}
}

// restartAll holds restarts of all pods against those of single ones.
func (r *Validation) restartAll() {
	f := &r.Spec.Failure
	const at = "spec.failure.restartAll"
	switch {
	case f.RestartAll == nil:
	case r.Spec.Target == job.TargetVCJob && f.ReplacesAlone():
		field := "spec.failure.restarts"
		if f.RestartsPerWorker != nil {
			field = "spec.failure.restartsPerWorker"
		}
		r.fail(field, "requires", "Volcano has one number for both: with restartAll the first failed pod starts all "+
			"anew; leave this one out")
	case *f.RestartAll > 0:
	case r.Spec.Target == job.TargetVCJob:
		r.fail(at, "requires", "Volcano counts every restart, so uncounted never restarts anything: use a number, or "+
			"leave it out")
	case !r.Spec.RestartsOnDisruption() && !slices.ContainsFunc(f.Rules, job.FailureRule.Restarts):
		r.fail(at, "requires", "every failure of this job counts, so uncounted never restarts anything: use a number, "+
			"or set ignoreDisruptions with restarts: 0, or a rule that restarts uncounted, or leave it out")
	}
}

// countedTasks refuses what Volcano would count wrongly, since it counts the pods of all tasks together.
func (r *Validation) countedTasks() {
	if r.Spec.Target != job.TargetVCJob || len(r.Spec.Groups) == 0 {
		return
	}
	w := &r.Spec.Workers
	if w.Min < w.Max {
		field := "spec.workers.min"
		if !r.IsSet(field) {
			field = "spec.workers.max"
		}
		r.fail(field, "requires", "Volcano counts the pods of all groups towards the %d workers that must succeed "+
			"(minSuccess): leave it out, or use target jobset", w.Min)
	}
	if r.Spec.Failure.GoesOn() && r.Spec.Ordered() && r.Spec.Success == nil {
		field := "spec.failure.restartAllOn"
		if r.Spec.Failure.RestartsPerWorker != nil {
			field = "spec.failure.restartsPerWorker"
		}
		r.fail(field, "requires", "Volcano takes a job for complete in which as many pods "+
			"succeed as start first, whichever fail: leave it out, or leave after out, or name those that "+
			"decide in success")
	}
}
