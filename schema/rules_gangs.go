package schema

import (
	"cmp"
	"slices"

	"github.com/tegen-dev/tegen/internal/structural"
)

// gangsOf are the jobs with a gang of which all is known that rules between gangs read.
func gangsOf(jobs []loaded) (indexes []int) {
	for i, l := range jobs {
		if l.job != nil && l.job.Spec.Gang.Active() &&
			!slices.ContainsFunc([]string{"metadata", "gang", "placement", "framework", "target"}, l.invalid.touch) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// sharedGangs refuses two jobs of one gang: a scheduler would count the pods of both towards the minimum of either.
func sharedGangs(jobs []loaded, roots []*structural.Node) (errs Errors) {
	type gang struct{ kind, id string }
	first := map[gang]int{}
	for _, i := range gangsOf(jobs) {
		job := jobs[i].job
		kind, remedy := job.Spec.gangKind(), "give each a name of its own"
		if kind == "" {
			continue
		}
		if kind == GangKoordinator {
			remedy += " and join them by groups"
		}
		for _, id := range job.GangIDs() {
			if j, ok := first[gang{kind, id}]; ok {
				errs = append(errs,
					roots[i].Errorf("spec.gang.name", "duplicate", "%q is the gang of job %q already; %s", id,
						jobs[j].job.Metadata.Name, remedy))
				break
			}
			first[gang{kind, id}] = i
		}
	}
	return errs
}

// gangGroups refuses gangs of one group that do not agree which group that is, since a scheduler tells groups apart by
// their lists, or whose pods it could not place as one.
func gangGroups(jobs []loaded, roots []*structural.Node) (errs Errors) {
	owners := map[string]int{}
	for _, i := range gangsOf(jobs) {
		for _, id := range jobs[i].job.GangIDs() {
			// the only kind that has groups
			if j, ok := owners[id]; !ok || jobs[j].job.Spec.gangKind() != GangKoordinator {
				owners[id] = i
			}
		}
	}
	for _, i := range gangsOf(jobs) {
		group := jobs[i].job.GangGroup()
		for _, id := range group {
			j, ok := owners[id]
			same := ok && slices.Equal(group, jobs[j].job.GangGroup())
			if !ok || j == i || same && i < j { // both would say the same: the later one does
				continue
			}
			own, other := jobs[i].job, jobs[j].job
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
func unlikeGangs(a, b *Spec) (out []unlike) {
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
