package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// keepsOwnRendezvous says whether torchrun's words stay as they are, in a job that adds no rendezvous to them: several
// pods that meet by ranks that the words themselves say, or that do not meet at all. Where the pods' controller tells
// torchrun of the others, its words alone do not say how they meet.
func (d *draft) keepsOwnRendezvous(p *program, c view) bool {
	n, known := d.get("spec.workers.replicas").number() // or there are as many as somebody fills in
	target := d.get("spec.target").text()
	if known && n < 2 || p.launcher != "torchrun" || p.torchelastic() ||
		d.controllerConfiguresTorchrun() || target == job.TargetElasticJob ||
		d.workload[0].view().at("spec", "plugins", "pytorch").isSet() || tellsOfTutorial(c) {
		return false
	}
	o := optionsOf(c)
	nodes := o.says("nnodes", "PET_NNODES")
	switch alone := nodes == "" || nodes == "1" || nodes == "1:1"; {
	case o.flags["standalone"], o.unread == "" && o.isStatic() && alone:
		d.advise(programOf(c), "torchrun trains in each pod for itself, as before: for one training of all %s, "+
			"leave out launcher: none and torchrun's own options", d.get("spec.workers.replicas").text())
		return true
	case o.unread != "", !o.isStatic(), strings.Contains(nodes, ":"), o.says("node-rank", "PET_NODE_RANK") == "",
		known && !strings.Contains(nodes, "$") && nodes != d.get("spec.workers.replicas").text():
		return false // not read, or they could never meet
	}
	d.advise(programOf(c), "the pods meet by numbers that the command says, as before, and none that is lost "+
		"is taken back: leave out launcher: none and torchrun's own options for a rendezvous that takes it back")
	return true
}

// advise tells of what a TrainingJob could do better; one that tegen rendered was asked for.
func (d *draft) advise(v view, format string, args ...any) {
	if !d.workload[0].view().at("metadata", "labels", names.LabelJob).isSet() {
		d.note(v, Warning, format, args...)
	}
}

// tellsOfTutorial says whether a container has variables of the torchelastic tutorial's rendezvous.
func tellsOfTutorial(c view) bool {
	return slices.ContainsFunc(c.at("env").items(), func(e view) bool {
		return slices.Contains(tutorialVariables, e.at("name").text())
	})
}

// torchrunOptions are what torchrun is told by its options and its variables.
type torchrunOptions struct {
	*program
	env view
}

// optionsOf reads the options of a container's torchrun, and leaves its words alone.
func optionsOf(c view) torchrunOptions {
	p := newProgram(c)
	p.take(append([]string{"standalone"}, torchOptions...)...)
	return torchrunOptions{p, c.at("env")}
}

// says is the value of an option, also where a shell has yet to fill it in; an option wins over a variable.
func (o torchrunOptions) says(option, variable string) string {
	if text, ok := o.taken[option]; ok {
		return text
	}
	if text, ok := o.left[option]; ok {
		return text
	}
	e := o.env.item("name", variable)
	if from := e.at("valueFrom"); from.isSet() {
		return "$(" + variable + ")"
	}
	return e.at("value").text()
}

// isStatic says whether torchrun's agents meet by numbers, as they do where no other backend and no endpoint of one is
// named (torch/distributed/run.py: --rdzv-backend is static by default).
func (o torchrunOptions) isStatic() bool {
	backend := o.says("rdzv-backend", "PET_RDZV_BACKEND")
	return backend == "static" || backend == "" && o.says("rdzv-endpoint", "PET_RDZV_ENDPOINT") == ""
}
