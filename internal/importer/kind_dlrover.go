package importer

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readDLRoverJob reads a job of DLRover: its role of workers. Any other is dropped.
func readDLRoverJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	worker := spec.at("replicaSpecs", "worker")
	if !worker.isSet() {
		return nil, errors.New("it has no spec.replicaSpecs.worker")
	}
	d := newDraft(s, o, job.FrameworkDLRover, job.TargetElasticJob, o.name)
	d.roleReplicas(worker)
	strategy := spec.at("distributionStrategy")
	d.set("spec.dlrover.strategy", strategy.text(), strategy)
	if !strategy.isSet() {
		d.note(strategy, Changed, "DLRover's master takes a job without a distributionStrategy for one with parameter "+
			"servers: AllreduceStrategy is rendered")
	}
	// v0.6.1, dlrover/python/master/main.py and scaler/pod_scaler.py
	if policy := worker.at("template", "spec", "restartPolicy"); policy.isSet() && policy.text() != "Always" {
		d.note(policy, Translated, "under AllreduceStrategy DLRover's master makes a worker anew that failed, "+
			"whatever this says, and gives each Never")
		policy.markTranslated()
	}
	mode := spec.at("optimizeMode")
	// the API's own spelling
	d.set("spec.dlrover.optimizeMode", strings.Replace(mode.text(), "manunal", "manual", 1), mode)
	d.set("spec.dlrover.brain", spec.at("brainService").text(), spec.at("brainService"))
	pending := o.view().at("metadata", "annotations", "pending_timeout")
	d.seconds("spec.dlrover.pendingTimeout", pending)
	delete(d.get("metadata.annotations").mapping(), "pending_timeout")
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	if n, ok := worker.at("restartCount").number(); ok {
		d.set("spec.failure.restartsPerWorker", n, worker.at("restartCount"))
	}
	c := d.worker(worker.at("template"))
	if class := worker.at("priority"); class.isSet() && !d.get("spec.placement.priorityClass").isSet() {
		d.set("spec.placement.priorityClass", class.text(), class)
	}
	d.dlroverProgram(worker.at("template", "spec"), c)
	d.env(c)
	d.switchOffExtras()
	return d, nil
}

// dlroverProgram reads the program out of the call of dlrover-run that tegen puts around it, sh -c TEXT dlrover-run
// LEAST [OPTION...]. An author's own call stays as it is, and says how few workers train.
func (d *draft) dlroverProgram(pod, c view) {
	p := newProgram(c)
	if words := p.words(); len(words) > 4 && words[0] == "sh" && words[1] == "-c" && words[3] == "dlrover-run" {
		d.dlroverCall(p, pod, c)
		return
	}
	p.take("nnodes")
	text, ok := p.taken["nnodes"]
	if !ok {
		text, ok = p.left["nnodes"]
	}
	if least, _, _ := strings.Cut(text, ":"); ok && !strings.Contains(least, "$") {
		d.setInteger("spec.workers.min", setting{least, programOf(c)})
	}
	d.set("spec.command", c.at("command").texts(), c.at("command"))
	d.set("spec.args", c.at("args").texts(), c.at("args"))
	program := job.Spec{
		Framework: job.FrameworkDLRover, Command: c.at("command").texts(),
		Args: c.at("args").texts(),
	}
	if program.Launch() == nil && programOf(c).isSet() {
		c.at("command").markTranslated()
		c.at("args").markTranslated()
		d.note(programOf(c), Translated, "tegen starts it with dlrover-run, which the image must have")
	}
}

func (d *draft) dlroverCall(p *program, pod, c view) {
	words := p.words()
	if n, err := strconv.ParseInt(words[4], 10, 64); err == nil {
		d.set("spec.workers.min", n, c.at("args"))
	}
	call := *p // which has been taken nothing of yet
	call.command, call.args, call.from, call.start, call.shell, call.launcher = nil, words[5:], p.from[5:], 0, -1,
		"dlrover-run"
	call.take("network-check", "exclude-straggler", "node-unit", "max-restarts", "nproc-per-node", "rdzv-conf")
	for field, flag := range map[string]string{
		"networkCheck":     "network-check",
		"excludeStraggler": "exclude-straggler",
	} {
		if call.flags[flag] {
			d.set("spec.dlrover."+field, true, c.at("args"))
		}
	}
	if s := (setting{call.taken["node-unit"], c.at("args")}); s.text != "" {
		d.setInteger("spec.dlrover.nodeUnit", s)
	}
	d.launcherSettings(&call, c)
	if call.args = slices.Clone(call.args); len(call.args) > 0 && call.args[0] == "--no_python" {
		call.command, call.args = call.args[1:], nil
	}
	d.script(&call, pod, c)
	call.set(d, c)
}
