package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
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

var groupRules = []Rule{
	part.Of1(groupNames, part.Groups),
	part.Of1(groupPrograms, part.Groups),
	part.Of4(groupEnvironment, part.WorkersAndGroups, part.Env, part.Groups, part.Checkpoint),
	part.Of1(groupAccelerators, part.Groups),
	part.Of2(startOrder, part.WorkersAndGroups, starts),
	part.Of3(orderInGang, part.Gang, part.Target, part.Ordered),
	part.Of3(groupsInQueue, part.Gang, part.Target, part.Groups),
	part.Of2(successGroups, part.Success, part.WorkersAndGroups),
	part.Of4(coordinatorPod, part.Coordinator, part.WorkersAndGroups, part.Groups, part.Counts),
	part.Of3(restartAll, part.Failure, part.Target, part.OfSpec("failure groups", (*job.Spec).RestartsOnDisruption)),
	part.Of3(countedWorkers, part.Target, part.Groups, part.Counts),
	part.Of5(countedFailures, part.Target, part.Groups, part.Ordered, part.Failure, part.Success),
}

// ReservedGroup says whether tegen calls objects of its own by a name, so that no group may have it.
func ReservedGroup(name string) bool {
	group := definition.Job().Field("spec").Schema.Field("groups").Schema.Elem.Field("name").Schema
	return name != job.RoleWorker && group.Refusal(name) == "reserved"
}

// groupNames refuses two groups of one name.
func groupNames(p *Problems, groups []job.Group) {
	seen := map[string]bool{}
	for i, g := range groups {
		if seen[g.Name] {
			p.fail(fmt.Sprintf("spec.groups[%d].name", i), "duplicate", "%s is the name of another group already",
				g.Name)
		}
		seen[g.Name] = true
	}
}

// groupPrograms refuses a group that would silently run the entrypoint of the workers' image.
func groupPrograms(p *Problems, groups []job.Group) {
	for i, g := range groups {
		if len(g.Command)+len(g.Args) == 0 && g.Image == "" {
			p.fail(fmt.Sprintf("spec.groups[%d]", i), "requires",
				"nothing says what group %s runs: give a command, args, or an image of its own", g.Name)
		}
	}
}

// groupEnvironment refuses variables that are set twice, and the variables that tegen sets.
func groupEnvironment(p *Problems, names []string, env []job.Env, groups []job.Group, place *job.Checkpoint) {
	hosts := map[string]bool{}
	for _, name := range names {
		hosts[job.HostVariable(name)] = len(groups) > 0
	}
	check := func(at string, env []job.Env, duplicates bool) {
		seen := map[string]bool{}
		for i, e := range env {
			switch at := fmt.Sprintf("%s.env[%d].name", at, i); {
			case hosts[e.Name]:
				p.fail(at, "reserved", "%s is set by tegen: the host name of a group's first pod", e.Name)
			case duplicates && seen[e.Name]:
				p.fail(at, "duplicate", "%s is set twice", e.Name)
			case duplicates && e.Name == "CHECKPOINT_DIR" && place != nil:
				p.fail(at, "reserved", "CHECKPOINT_DIR is set by spec.checkpoint")
			}
			seen[e.Name] = true
		}
	}
	check("spec", env, false)
	for i, g := range groups {
		check(fmt.Sprintf("spec.groups[%d]", i), g.Env, true)
	}
}

// groupAccelerators refuses groups with accelerators and without a CPU or memory request.
func groupAccelerators(p *Problems, groups []job.Group) {
	for i, g := range groups {
		at := fmt.Sprintf("spec.groups[%d].resources", i)
		if missing := unsaid(p, at); g.Resources.GPU > 0 && len(missing) > 0 {
			p.fail(at+".gpu", "requires", "%d of %s without %s: write how much a pod of group %s needs, or none "+
				"for no limit; an Environment may say it for each accelerator, in accelerator.each", g.Resources.GPU,
				g.Resources.GPUResource, strings.Join(missing, " and "), g.Name)
		}
	}
}

// start is the workers or a group, and what they start after.
type start struct {
	name, at string
	after    []job.After
}

var starts = part.OfSpec("workers.after groups", func(s *job.Spec) []start {
	all := []start{{job.RoleWorker, "spec.workers.after", s.Workers.After}}
	for i, g := range s.Groups {
		all = append(all, start{g.Name, fmt.Sprintf("spec.groups[%d].after", i), g.After})
	}
	return all
})

// startOrder refuses to start pods after a group that does not exist, or that waits for these pods.
func startOrder(p *Problems, known []string, starts []start) {
	for _, s := range starts {
		var before []string
		for i, a := range s.after {
			at := fmt.Sprintf("%s[%d].group", s.at, i)
			switch {
			case !slices.Contains(known, a.Group):
				p.fail(at, "unknown", "there is no group %s: one of %s", a.Group, strings.Join(known, ", "))
			case slices.Contains(before, a.Group):
				p.fail(at, "duplicate", "%s is listed twice", a.Group)
			case a.Group == s.name:
				p.fail(at, "order", "%s would wait for itself: leave it out", s.name)
			case waitsFor(starts, a.Group, s.name, nil):
				p.fail(at, "order", "%s waits for %s already, so that neither would ever start: leave one of the two "+
					"out", a.Group, s.name)
			}
			before = append(before, a.Group)
		}
	}
}

// waitsFor says whether a group waits for another one, directly or through others, or is that one.
func waitsFor(starts []start, name, other string, seen []string) bool {
	if name == other {
		return true
	}
	i := slices.IndexFunc(starts, func(s start) bool { return s.name == name })
	if i < 0 || slices.Contains(seen, name) {
		return false
	}
	return slices.ContainsFunc(starts[i].after, func(a job.After) bool {
		return waitsFor(starts, a.Group, other, append(seen, name))
	})
}

// orderInGang refuses a gang with pods that are created only after others of the gang run. Kueue admits a JobSet before
// it has pods, and Volcano's own Job counts only those that wait for nothing.
func orderInGang(p *Problems, g *job.Gang, target string, ordered bool) {
	if !g.Active() || !ordered || g.Is(job.GangKueue) || target == job.TargetVCJob {
		return
	}
	p.fail("spec.gang.scheduler", "requires", "%s places all pods of the job or none, and some of them are made only "+
		"when others run (after): leave after out, or use kueue", g.Scheduler)
}

// groupsInQueue refuses groups that are Jobs in a queue: Kueue admits Jobs one by one, so that one of them could hold
// the quota that the others wait for.
func groupsInQueue(p *Problems, g *job.Gang, target string, groups []job.Group) {
	if g.Is(job.GangKueue) && target == job.TargetJob && len(groups) > 0 {
		p.fail("spec.gang.scheduler", "requires", "each group is a Job of its own, and Kueue admits Jobs one by one: "+
			"use target jobset, which Kueue admits as a whole")
	}
}

// successGroups refuses to wait for the success of a group that does not exist.
func successGroups(p *Problems, success *job.Success, known []string) {
	if success == nil {
		return
	}
	for i, name := range success.Groups {
		if !slices.Contains(known, name) {
			p.fail(fmt.Sprintf("spec.success.groups[%d]", i), "unknown", "there is no group %s: one of %s", name,
				strings.Join(known, ", "))
		}
	}
}

// coordinatorPod refuses a coordinator that does not exist, or that an elastic job may run without.
func coordinatorPod(p *Problems, c *job.Coordinator, known []string, groups []job.Group, n part.Count) {
	if c == nil {
		return
	}
	count := min(n.Replicas, n.Min) // any other may be missing
	switch i := slices.Index(known, c.Group); {
	case i < 0:
		p.fail("spec.coordinator.group", "unknown", "there is no group %s: one of %s", c.Group,
			strings.Join(known, ", "))
		return
	case i > 0: // behind the workers
		count = groups[i-1].Replicas
	}
	if c.Index >= count {
		p.fail("spec.coordinator.index", "range", "group %s has %d pods that are always there, counted from 0: %d is "+
			"none of them", c.Group, count, c.Index)
	}
}

// restartAll refuses restarts of all pods that contradict those of single pods, or that never happen.
func restartAll(p *Problems, f *job.Failure, target string, onDisruption bool) {
	const at = "spec.failure.restartAll"
	switch {
	case f.RestartAll == nil:
	case target == job.TargetVCJob && f.ReplacesAlone():
		field := "spec.failure.restarts"
		if f.RestartsPerWorker != nil {
			field = "spec.failure.restartsPerWorker"
		}
		p.fail(field, "requires", "Volcano has one number for both: with restartAll the first failed pod starts all "+
			"anew; leave this one out")
	case *f.RestartAll > 0:
	case target == job.TargetVCJob:
		p.fail(at, "requires", "Volcano counts every restart, so uncounted never restarts anything: use a number, or "+
			"leave it out")
	case !onDisruption && !slices.ContainsFunc(f.Rules, job.FailureRule.Restarts):
		p.fail(at, "requires", "every failure of this job counts, so uncounted never restarts anything: use a number, "+
			"or set ignoreDisruptions with restarts: 0, or a rule that restarts uncounted, or leave it out")
	}
}

// countedWorkers refuses an elastic Volcano Job with groups: Volcano counts the pods of all tasks together.
func countedWorkers(p *Problems, target string, groups []job.Group, n part.Count) {
	if target != job.TargetVCJob || len(groups) == 0 || n.Min >= n.Max {
		return
	}
	field := "spec.workers.min"
	if !p.IsSet(field) {
		field = "spec.workers.max"
	}
	p.fail(field, "requires", "Volcano counts the pods of all groups towards the %d workers that must succeed "+
		"(minSuccess): leave it out, or use target jobset", n.Min)
}

// countedFailures refuses a Volcano Job that goes on after failures if some pods start later: Volcano completes it when
// as many pods have succeeded as start first.
func countedFailures(
	p *Problems, target string, groups []job.Group, ordered bool, f *job.Failure, success *job.Success,
) {
	if target != job.TargetVCJob || len(groups) == 0 || !f.GoesOn() || !ordered || success != nil {
		return
	}
	field := "spec.failure.restartAllOn"
	if f.RestartsPerWorker != nil {
		field = "spec.failure.restartsPerWorker"
	}
	p.fail(field, "requires", "Volcano takes a job for complete in which as many pods succeed as start first, "+
		"whichever fail: leave it out, or leave after out, or name those that decide in success")
}
