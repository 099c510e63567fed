package importer

import (
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// torchOptions are torchrun's options that have fields in the schema.
var torchOptions = []string{
	"nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf",
	"max-restarts", "node-rank", "master-addr", "master-port",
}

// staticOptions are those of a rendezvous by the pods' own numbers. They have no field.
var staticOptions = []string{"node-rank", "master-addr", "master-port"}

// torchVariables are the variables that tegen sets for torchrun; they have fields in the schema.
var torchVariables = []string{
	"TEGEN_RUN_UID", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "PET_RDZV_ID", "PET_RDZV_BACKEND",
	"PET_RDZV_ENDPOINT", "PET_RDZV_CONF", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_MAX_RESTARTS",
}

var tutorialVariables = []string{
	"RDZV_ENDPOINT", "JOB_ID", "MIN_SIZE", "MAX_SIZE", "ETCD_PROTOCOL", "ETCD_CACERT",
	"ETCD_CERT", "ETCD_KEY",
}

// setting is a value and its place.
type setting struct {
	text string
	from view
}

// torch reads a worker of torchelastic: its program and its rendezvous, from the launcher's own options, from what its
// controller sets by the names of those options, or from the environment, in this order.
func (d *draft) torch(pod, c view, fromController map[string]setting) {
	p := newProgram(c)
	ofProxy := d.proxied(p, pod, c)
	if d.withoutRendezvous(p, c, fromController) || d.keepsOwnRendezvous(p, c) {
		d.plainProgram(p, pod, c)
		return
	}
	master := d.get("spec.workers.master").isTrue()
	p.byController = d.controllerConfiguresTorchrun() || d.workload[0].view().at("spec", "plugins", "pytorch").isSet()
	if !master { // which needs all that the program says
		p.take(torchOptions...)
	}
	byEntrypoint := c.at("env").item("name", "RDZV_ENDPOINT").isSet()
	for _, name := range []string{"PET_NNODES", "PET_RDZV_BACKEND", "PET_MAX_RESTARTS"} {
		d.torchSet[name] = byEntrypoint // by variables of the tutorial's, or by its images
	}
	get := func(option, variable, tutorial string) setting {
		s, keepMaster := p.setting(option, variable, tutorial, c, fromController)
		d.torchSet[variable] = d.torchSet[variable] || keepMaster || s.text != ""
		return s
	}
	if nodes := get("nnodes", "PET_NNODES", ""); !d.reportSingleNode(nodes) {
		d.nodes(nodes, c)
	}
	if processes := get("nproc-per-node", "PET_NPROC_PER_NODE", ""); processes.text != "" ||
		!d.torchSet["PET_NPROC_PER_NODE"] && !p.mentions("nproc-per-node") {
		d.processes(processes)
	}
	backend, endpoint := get("rdzv-backend", "PET_RDZV_BACKEND", ""),
		get("rdzv-endpoint", "PET_RDZV_ENDPOINT", "RDZV_ENDPOINT")
	if before := byEntrypoint || p.torchelastic(); backend.text == "" && endpoint.text != "" && before {
		backend = setting{job.BackendEtcd, endpoint.from} // which is all that was known before torchrun
	}
	if ofProxy.text != "" {
		endpoint = ofProxy
	}
	d.readRendezvous(backend, endpoint)
	d.conf(get("rdzv-conf", "PET_RDZV_CONF", ""))
	if d.get("spec.target").text() != job.TargetElasticJob && !byEntrypoint && !p.torchelastic() {
		d.torchrunTimeout(backend)
	}
	d.runID(get("rdzv-id", "PET_RDZV_ID", "JOB_ID"))
	d.reportStaticRendezvous(backend, p, c)
	d.restarts(get("max-restarts", "PET_MAX_RESTARTS", ""), p)
	d.reportSeparateRuns(p, c)
	d.torchProgram(p, pod, c, byEntrypoint)
	read := append(d.sliceVariables(c), torchVariables...)
	if byEntrypoint {
		read = append(read, tutorialVariables...)
		if size := c.at("env").item("name", "SIZE").at("value"); size.isSet() &&
			size.text() == d.get("spec.workers.max").text() {
			read = append(read, "SIZE")
		}
	}
	d.env(c, read...)
}

// setting is what says an option of the launcher, and whether the option stays where a shell reads it, which says more.
func (p *program) setting(option, variable, tutorial string, c view, fromController map[string]setting) (s setting,
	keepMaster bool,
) {
	if text, ok := p.taken[option]; ok { // an option wins over a variable
		return setting{text, p.at[option]}, false
	}
	if _, keepMaster = p.left[option]; keepMaster {
		return setting{}, true
	}
	if s, ok := fromController[option]; ok {
		return s, false
	}
	for _, name := range []string{variable, tutorial} {
		if e := c.at("env").item("name", name); name != "" && e.isSet() {
			return setting{e.at("value").text(), e}, false
		}
	}
	return setting{}, false
}

// nodes reads MIN:MAX, or N for both.
func (d *draft) nodes(s setting, c view) {
	low, high, elastic := strings.Cut(s.text, ":")
	if s.text == "" {
		for field, name := range map[string]string{"min": "MIN_SIZE", "max": "MAX_SIZE"} {
			if e := c.at("env").item("name", name); e.isSet() {
				d.setInteger("spec.workers."+field, setting{e.at("value").text(), e})
			}
		}
		return
	}
	if !elastic {
		high = low
	}
	for _, bound := range []struct{ field, text string }{{"min", low}, {"max", high}} {
		n, err := strconv.ParseInt(bound.text, 10, 64)
		switch {
		case err == nil:
			d.set("spec.workers."+bound.field, n, s.from)
		case placeholder(bound.text) && d.get("spec.workers.replicas").text() != bound.text:
			d.set("spec.workers."+bound.field, bound.text, s.from)
		case placeholder(bound.text): // the replicas have the same, and say it
		case strings.HasPrefix(bound.text, "$"): // the number of pods, which only their environment knows
			replicas := d.get("spec.workers.replicas")
			d.set("spec.workers."+bound.field, replicas.value, s.from)
			d.note(s.from, Translated, "%s in --nnodes is taken for the number of workers, %s", bound.text,
				replicas.text())
		}
	}
}

func (d *draft) processes(s setting) {
	switch s.text {
	case "": // torchrun's own, where a TrainingJob has one for each accelerator
		if !d.get("spec.workers.processes").isSet() {
			d.set("spec.workers.processes", int64(1), d.workload[0].view())
		}
	case "auto", "gpu", "cpu":
		d.set("spec.workers.processes", s.text, s.from)
	default:
		d.setInteger("spec.workers.processes", s)
	}
}

// torchProgram reads what the workers run, and who starts it.
func (d *draft) torchProgram(p *program, pod, c view, byEntrypoint bool) {
	launches := p.launcher == "torchrun" && p.start >= 0 && len(p.command) > 0 && !p.torchelastic() &&
		!d.get("spec.workers.master").isTrue()
	// somebody else starts it, as it stands: a shell, another program, what its image has for an entrypoint
	if !launches {
	} else if len(p.command) == 1 && p.command[0] == "torchrun" && len(p.args) > 0 &&
		!strings.HasPrefix(p.args[0], "-") {
		p.command = nil
	} else if len(p.command) > 2 && p.command[0] == "torchrun" && p.command[1] == "--no_python" {
		p.command = p.command[2:]
	} else if launches && p.start > len(p.command) { // or tegen would put another in front
		p.command, p.args = p.words(), nil
		c.at("command").markTranslated()
		c.at("args").markTranslated()
	}
	if byEntrypoint || !launches {
		d.set("spec.launcher", job.LauncherEntrypoint, c)
	}
	d.script(p, pod, c)
	p.set(d, c)
}

// script reads where the training script comes from, where tegen brings it.
func (d *draft) script(p *program, pod, c view) {
	if len(p.args) == 0 {
		return
	}
	first := p.args[0]
	config := pod.at("volumes").item("name", "script").at("configMap", "name")
	fetch := pod.at("initContainers").item("name", "fetch-script")
	mounted := c.at("volumeMounts").item("mountPath", scriptDir).isSet() && strings.HasPrefix(first, scriptDir+"/")
	switch command := fetch.at("command").texts(); {
	case mounted && config.isSet():
		d.set("spec.script.configMap", tree{"name": config.text(), "key": strings.TrimPrefix(first, scriptDir+"/")},
			config)
	case mounted && len(command) == 5 && command[0] == "aws":
		d.set("spec.script.s3", unescaped(command[3]), fetch.at("command"))
		d.set("spec.images.aws", fetch.at("image").text(), fetch.at("image"))
	case strings.HasPrefix(first, "s3://") && len(p.command) == 0 &&
		d.get("spec.launcher").text() == job.LauncherEntrypoint:
		d.set("spec.script", tree{"s3": unescaped(first), "fetch": job.FetchEntrypoint}, c.at("args").items()[0])
	default:
		return
	}
	p.args = p.args[1:]
}
