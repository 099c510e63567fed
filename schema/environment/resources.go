package environment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
	"github.com/tegen-dev/tegen/schema/target"
)

// passedOver are fields of an environment, which speaks to jobs of all frameworks and targets, that are not for a job:
// those of other frameworks, and as defaults also those that its target cannot carry. What an author says there is
// refused.
func passedOver(trees ...*structural.Node) (foreign, lacking []string) {
	t := target.Of(firstText("framework", job.FrameworkTorchelastic, trees), firstText("target", job.TargetJob, trees))
	if t == nil {
		return nil, nil
	}
	if firstText("master", "", workersOf(trees)) == "true" { // where workers meet at the Master, each pod one process
		foreign = append(foreign, "rendezvous", "workers.processes")
	}
	for field, reason := range t.Lacks {
		switch {
		// which are for the jobs that have them
		case strings.HasPrefix(reason, target.OwnedBy), strings.HasPrefix(field, "roles."):
			foreign = append(foreign, field)
		// a part of a section, and one value of a field, are lacking there
		case field != "mxnet" && !strings.Contains(field, "="):
			lacking = append(lacking, field)
		}
	}
	return foreign, append(lacking, foreign...)
}

// firstText is a field of the first tree that has it.
func firstText(field, otherwise string, trees []*structural.Node) string {
	for _, n := range trees {
		if n != nil && n.Field(field) != nil {
			return n.Field(field).Text
		}
	}
	return otherwise
}

func workersOf(trees []*structural.Node) (all []*structural.Node) {
	for _, n := range trees {
		all = append(all, n.Below("workers"))
	}
	return all
}

// takesAccelerators says whether an environment leaves no accelerators to any job.
func (env *Environment) takesAccelerators() bool {
	gpu := env.Root.Below("spec", "overrides", "resources", "gpu")
	return gpu != nil && gpu.Text == "0"
}

// applyToGroups gives groups what an environment gives or takes of workers: variables, accelerators, and what those
// need to land on their nodes.
func (env *Environment) applyToGroups(spec *job.Spec) {
	for i := range spec.Groups {
		g := &spec.Groups[i]
		for _, e := range env.Spec.Env {
			if !slices.ContainsFunc(g.Env, func(own job.Env) bool { return own.Name == e.Name }) {
				g.Env = append(g.Env, e)
			}
		}
		if env.takesAccelerators() {
			g.Resources.GPU = 0
		}
		p := job.Placement{NodeSelector: g.NodeSelector, Tolerations: g.Tolerations}
		if env.Spec.Anywhere {
			p = job.Placement{}
		}
		if a := env.Spec.Accelerator; a != nil && g.Resources.GPU > 0 {
			a.Apply(&p)
			g.RuntimeClass = p.RuntimeClass
		}
		g.NodeSelector, g.Tolerations = p.NodeSelector, p.Tolerations
	}
}

// machine finds a type by its name: one of the Environment, or else of the table. A nil Environment has none.
func (env *Environment) machine(name string) *job.Machine {
	for _, list := range [][]job.Machine{env.machines(), machine.All()} {
		i := slices.IndexFunc(list, func(m job.Machine) bool { return m.Name == name })
		if i >= 0 {
			return &list[i]
		}
	}
	return nil
}

func (env *Environment) machines() []job.Machine {
	if env == nil {
		return nil
	}
	return env.Spec.Machines
}

// Furnish gives workers with accelerators their share of the machine that the job or the Environment names, where the
// job itself does not say it. It returns the machine, nil where none is known.
func (env *Environment) Furnish(spec *structural.Node) *job.Machine {
	trees := []*structural.Node{spec}
	if env != nil {
		says := env.Root.Field("spec")
		trees = []*structural.Node{says.Field("overrides"), spec, says.Field("defaults")}
	}
	i := slices.IndexFunc(trees, func(n *structural.Node) bool { return n.Below("resources", "machine") != nil })
	if i < 0 {
		return nil
	}
	name, count := trees[i].Below("resources", "machine"), acceleratorsOf(trees...)
	m := env.machine(name.Text)
	if m == nil || count < 1 {
		return m
	}
	resources := sectionOf(spec, "resources", name.At)
	if resources.Kind != yamldoc.Map {
		return m
	}
	share := m.Share(int64(count))
	for _, tree := range trees { // shared memory is a part of what the worker has
		if own := tree.Below("resources", "memory"); own != nil {
			if q, err := quantity.Parse(own.Text); err == nil && q.Value() > 0 {
				share["shm"] = job.SharedMemory(q.Value())
			}
			break
		}
	}
	share["gpuResource"] = m.Accelerator()
	for _, field := range slices.Sorted(maps.Keys(share)) {
		if resources.Entry(field) == nil {
			value := &structural.Node{Kind: yamldoc.String, Text: share[field], At: name.At}
			resources.Add(field, name.At, value.MarkMerged())
		}
	}
	return m
}

// CheckLevels refuses two levels of one name or one label: a job could mean either.
func (env *Environment) CheckLevels() (errs structural.Errors) {
	seen := map[string]bool{}
	for i, l := range env.Spec.Topology {
		for field, value := range map[string]string{"name": l.Name, "label": l.Label} {
			if key := field + " " + value; value != "" && seen[key] {
				errs = append(errs, env.Root.Errorf(fmt.Sprintf("spec.topology[%d].%s", i, field), "duplicate",
					"%s is another level's already", value))
			} else {
				seen[key] = true
			}
		}
	}
	return errs
}
