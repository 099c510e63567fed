package importer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/schema/job"
)

// reportStaticRendezvous reports a rendezvous by the pods' own numbers, which tegen does not render: with c10d or etcd,
// torchrun ignores a rank and a master.
func (d *draft) reportStaticRendezvous(backend setting, p *program, c view) {
	if p.left["rdzv-backend"] != "" || backend.text != "" && backend.text != "static" {
		return // and torchrun itself has passed over them
	}
	var present []string
	for _, name := range staticOptions {
		_, taken := p.taken[name]
		_, left := p.left[name]
		if taken || left {
			present = append(present, "--"+name)
		}
	}
	switch {
	case len(present) > 0:
		d.note(programOf(c), Changed,
			"%s say who is who: the workers meet by %s, whose ranks do not follow the pods' numbers",
			strings.Join(present, ", "), d.backend())
	case backend.text == "static":
		d.note(backend.from, Changed,
			"a static rendezvous: the workers meet by %s, whose ranks do not follow the pods' numbers", d.backend())
	}
}

func (d *draft) backend() string {
	return cmp.Or(d.get("spec.rendezvous.backend").text(), job.BackendC10d)
}

// restarts sets how often torchrun starts the processes of a pod again. Where nobody says, its own number is 0, and
// that of torchelastic before it was a part of PyTorch is 3, as in a TrainingJob.
func (d *draft) restarts(s setting, p *program) {
	const field = "spec.rendezvous.maxRestarts"
	noField := d.get("spec.target").text() == job.TargetTrainJob // whose controller tells torchrun nothing of them
	switch low, high := d.bounds(); {
	case s.text != "":
		d.setInteger(field, s)
	case noField, d.torchSet["PET_MAX_RESTARTS"], p.torchelastic(), p.mentions("max-restarts"):
	case low != high:
		at := d.from("spec.workers.min")
		d.set(field, int64(1), at)
		d.note(at, Changed, "nobody says --max-restarts, and torchrun's own is 0: an elastic TrainingJob starts the "+
			"processes of a pod again at least once")
	default:
		d.set(field, int64(0), d.workload[0].view())
	}
}

// torchelastic says whether the launcher is the one before torchrun.
func (p *program) torchelastic() bool {
	return strings.Contains(strings.Join(p.words(), " "), "torchelastic.distributed.launch")
}

// bounds are the fewest workers that train, and the most.
func (d *draft) bounds() (low, high string) {
	replicas := d.get("spec.workers.replicas").text()
	return cmp.Or(d.get("spec.workers.min").text(), replicas), cmp.Or(d.get("spec.workers.max").text(), replicas)
}

// reportSeparateRuns reports torchrun in several pods without --nnodes: each trained by itself, and the workers of a
// TrainingJob train together.
func (d *draft) reportSeparateRuns(p *program, c view) {
	at := orElse(programOf(c), c)
	if p.unread != "" {
		d.note(at, Warning, "%s, and win over the job's fields: see that those say the same", p.unread)
	}
	n, _ := d.get("spec.workers.replicas").number()
	if n < 2 || d.torchSet["PET_NNODES"] || d.controllerConfiguresTorchrun() ||
		c.at("env").item("name", "MIN_SIZE").isSet() || c.at("env").item("name", "MAX_SIZE").isSet() {
		return
	}
	switch {
	case p.launcher == "torchrun" && !p.mentions("nnodes"):
		d.note(at, Changed, "without --nnodes torchrun trains in each pod for itself: its rendezvous has all %d now, "+
			"and they train as one", n)
	case p.launcher == "" && isOpaque(p):
		verdict := Changed
		if len(p.command) == 0 { // of an image's own program nothing says that it trains
			verdict = Warning
		}
		d.note(at, verdict, "what it starts is not read: torchrun in it gets a rendezvous of all %d pods now, by "+
			"%s", n, d.backend())
	}
}

// reportSingleNode reports torchrun with one node where there are several pods: each trained by itself.
func (d *draft) reportSingleNode(nodes setting) bool {
	n, _ := d.get("spec.workers.replicas").number()
	if n < 2 || nodes.text != "1" && nodes.text != "1:1" {
		return false
	}
	d.note(nodes.from, Changed,
		"with --nnodes=%s torchrun trains in each pod for itself: its rendezvous has all %d now, and they train as one",
		nodes.text, n)
	return true
}

// controllerConfiguresTorchrun says whether the pods' controller sets torchrun's rendezvous, in the source too.
func (d *draft) controllerConfiguresTorchrun() bool {
	return slices.Contains([]string{job.TargetPyTorchJob, job.TargetTrainJob}, d.get("spec.target").text())
}

// mentions says whether an option stands anywhere in a program whose options were not read.
func (p *program) mentions(option string) bool {
	return p.unread != "" && strings.Contains(strings.ReplaceAll(strings.Join(p.words(), " "), "_", "-"), "-"+option)
}

// isOpaque says whether a program is one of which only the image knows what it starts.
func isOpaque(p *program) bool {
	words := p.words()
	if len(p.command) == 0 {
		return true
	}
	if p.shell < 0 {
		return strings.HasSuffix(words[0], ".sh") || len(words) > 1 && shell.Is(words[0])
	}
	s, ok := shell.Scan(words[p.shell])
	return !ok || slices.ContainsFunc(s.Tokens, func(t shell.Token) bool { return strings.HasSuffix(t.Text, ".sh") })
}
