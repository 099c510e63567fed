package importer

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readTorchElasticJob reads a job of TorchElastic's controller, which hands the launcher's options for the rendezvous
// to every container before its args.
func readTorchElasticJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	worker := spec.at("replicaSpecs", "Worker")
	if !worker.isSet() {
		return nil, errors.New("it has no spec.replicaSpecs.Worker")
	}
	d := newDraft(s, o, job.FrameworkTorchelastic, job.TargetElasticJob, o.name)
	d.roleReplicas(worker)
	for field, key := range map[string]string{"min": "minReplicas", "max": "maxReplicas"} {
		if n, ok := spec.at(key).number(); ok {
			d.set("spec.workers."+field, n, spec.at(key))
		}
	}
	if !worker.at("restartPolicy").isSet() {
		d.note(worker.at("restartPolicy"), Changed,
			"without a restartPolicy the kubelet starts what ended again, for ever: a TrainingJob's pods are made "+
				"again where they were killed")
	}
	d.elasticRestarts(worker.at("restartPolicy"), spec.at("RunPolicy"))
	d.readCleanPods(spec.at("RunPolicy"))
	c := d.worker(worker.at("template"))
	endpoint := spec.at("rdzvEndpoint")
	d.readRendezvous(setting{job.BackendEtcd, endpoint}, setting{endpoint.text(), endpoint})
	d.elasticProgram(worker.at("template", "spec"), c)
	d.env(c)
	d.switchOffExtras()
	return d, nil
}

// elasticRestarts reads what the controller does about pods that failed. With a limit of 0 the first ends the job
// whatever the policy; Never is that limit, and under ExitCode no other counts.
func (d *draft) elasticRestarts(policy, run view) {
	limit := run.at("backoffLimit")
	n, limited := limit.number()
	switch {
	case policy.text() == "Never" && !limited:
		d.set("spec.failure.restarts", int64(0), policy)
		d.note(policy, Translated, "the first failed worker ends the job, as by a backoffLimit of 0")
		policy.markTranslated()
	case policy.text() == "ExitCode" && (!limited || n > 0):
		d.set("spec.failure.restartsPerWorker", int64(0), policy)
		if limited {
			d.note(limit, Dropped, "under ExitCode the controller counts no failures")
			limit.markTranslated()
		}
	default:
		d.readUnboundedBackoff(run)
	}
}

// elasticProgram reads the launcher's options that the controller leaves open. Without a command the launcher is the
// image's entrypoint.
func (d *draft) elasticProgram(pod, c view) {
	p := newProgram(c)
	entrypoint := len(p.command) == 0
	if entrypoint {
		p.start, p.launcher = 0, "torchrun"
	}
	p.takeInOrder("max-restarts", "nproc-per-node", "rdzv-conf")
	d.launcherSettings(p, c)
	words := p.words()
	switch {
	case entrypoint || p.start < 0 || words[0] != "torchrun":
		d.set("spec.launcher", job.LauncherEntrypoint, c)
		if p.launcher == "" {
			d.note(c.at("command"), Added,
				"args get options of torchrun, as the controller gives them some of its own: it must start training "+
					"as torchrun does")
		}
	case len(words) > 2 && words[1] == "--no_python":
		p.command, p.args = words[2:], nil
	case len(words) > 1 && !strings.HasPrefix(words[1], "-"):
		p.command, p.args = nil, words[1:]
	}
	d.script(p, pod, c)
	p.set(d, c)
}

// launcherSettings reads what was taken out of the program.
func (d *draft) launcherSettings(p *program, c view) {
	get := func(name string) setting { return setting{p.taken[name], c.at("args")} }
	d.processes(get("nproc-per-node"))
	d.conf(get("rdzv-conf"))
	if s := get("max-restarts"); s.text != "" {
		d.setInteger("spec.rendezvous.maxRestarts", s)
	}
}
