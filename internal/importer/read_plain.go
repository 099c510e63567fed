package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// withoutRendezvous says whether nothing tells the pods of a rendezvous of torchrun's: no launcher is seen, no script
// that could start one, no variable and no controller.
func (d *draft) withoutRendezvous(p *program, c view, fromController map[string]setting) bool {
	switch d.get("spec.target").text() {
	case job.TargetElasticJob:
		return false
	case job.TargetTrainJob:
		if policy := d.workload[0].view().at("spec", "mlPolicy"); policy.at("torch").isSet() {
			return false
		}
	case job.TargetPyTorchJob:
		elastic := fromController["nnodes"].text != "" || fromController["rdzv-backend"].text != ""
		if elastic || fromController["nproc-per-node"].text != "auto" {
			return false
		}
	}
	if p.launcher != "" || d.get("spec.workers.master").isTrue() {
		return false
	}
	return !tellsOfTutorial(c) && !slices.ContainsFunc(c.at("env").items(), func(e view) bool {
		return strings.HasPrefix(e.at("name").text(), "PET_")
	})
}

// plainProgram reads a program that starts as it stands.
func (d *draft) plainProgram(p *program, pod, c view) {
	d.set("spec.launcher", job.LauncherNone, c)
	d.script(p, pod, c)
	p.set(d, c)
	d.env(c)
	if d.get("spec.target").text() == job.TargetTrainJob { // which nothing tells it
		delete(d.get("spec.workers").mapping(), "processes")
	}
}
