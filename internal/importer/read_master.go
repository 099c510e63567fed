package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// masterVariable matches the variables by which a controller numbers a job's pods: Kubeflow's operator where there is a
// Master, and Volcano's plugin for PyTorch.
var masterVariable = lazy.Regexp(`\b(WORLD_SIZE|RANK|MASTER_ADDR|MASTER_PORT)\b`)

// masterValue is an option's value that holds nothing but such variables, or numbers beside them.
var masterValue = lazy.Regexp(`^(?:` + masterPart + `)(?::(?:` + masterPart + `))?$`)

const masterPart = `\$(?:WORLD_SIZE|RANK|MASTER_ADDR|MASTER_PORT)|` +
	`\$\{(?:WORLD_SIZE|RANK|MASTER_ADDR|MASTER_PORT)\}|[0-9]+`

// asKubernetesHas spells the variables of such a value as a container's own words do, where no shell reads them: what
// is read of an option need not know the two apart.
func asKubernetesHas(value string) string {
	return masterVariable().ReplaceAllString(strings.NewReplacer("{", "", "}", "").Replace(value), "($1)")
}

// needMaster says whether the program of one of these roles reads the variables that the operator sets for the Master.
// torchrun needs them where nothing names another rendezvous, since the operator says the same by PET_MASTER_ADDR,
// PET_MASTER_PORT, PET_NNODES and PET_NODE_RANK (kubeflow/trainer v1.9.4, pkg/controller.v1/pytorch/envvar.go); else
// only where its words read one outside of options that become fields, or where its options are not read.
func needMaster(roles ...view) bool {
	roles = slices.DeleteFunc(roles, func(role view) bool { return !role.isSet() })
	torchrun := false
	for _, role := range roles {
		c := trainingContainer(role.at("template", "spec"))
		p := torchrunOptions{newProgram(c), c.at("env")}
		torchrun = torchrun || p.launcher == "torchrun"
		p.byController = true
		p.take(torchOptions...)
		if len(p.reads()) > 0 || p.unread != "" ||
			p.launcher == "torchrun" && p.isStatic() && len(roles) > 1 {
			return true
		}
	}
	return !torchrun
}

// reads are the variables of a Master that the words name.
func (p *program) reads() []string {
	found := masterVariable().FindAllString(strings.Join(p.words(), " "), -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// reportUnsetVariables reports variables of a Master that the program still reads and that are no longer set.
func (d *draft) reportUnsetVariables(from view, setter string) {
	p := &program{command: d.get("spec.command").texts(), args: d.get("spec.args").texts()}
	if names := p.reads(); len(names) > 0 {
		d.note(from, Changed,
			"the program reads %s, which %s alone sets, and no TrainingJob: have torchrun meet without them, or set "+
				"them in spec.env",
			strings.Join(names, ", "), setter)
	}
}
