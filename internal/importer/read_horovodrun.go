package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// values is how many values the options of horovodrun and mpirun take; those that are not here take none.
var values = map[string]int{
	"np": 1, "n": 1, "num-proc": 1, "p": 1, "ssh-port": 1, "i": 1, "H": 1, "hosts": 1, "host": 1,
	"hostfile": 1, "min-np": 1, "max-np": 1, "host-discovery-script": 1, "slots-per-host": 1,
	"slots": 1, "elastic-timeout": 1, "reset-limit": 1, "blacklist-cooldown-range": 2,
	"start-timeout": 1, "network-interfaces": 1, "fusion-threshold-mb": 1, "cycle-time-ms": 1,
	"timeline-filename": 1, "log-level": 1, "x": 1, "mca": 2, "bind-to": 1, "map-by": 1, "N": 1,
	"npernode": 1, "wdir": 1,
}

// plumbing are options that tegen writes itself, or that only say where the workers are.
var plumbing = []string{
	"H", "hosts", "host", "hostfile", "host-discovery-script", "slots-per-host", "slots",
	"blacklist-cooldown-range", "np", "n", "num-proc", "N", "npernode",
}

// totals are their names for the number of all processes.
var totals = []string{"np", "n", "num-proc"}

// known are the values of such options that name what the MPI operator or tegen makes.
var known = lazy.Regexp(`^([0-9 ]*|/etc/mpi/.*|/tegen/ssh/.*|localhost:[0-9]+)$`)

// horovodrun reads the launcher's call: its options, and the program behind them.
func (d *draft) horovodrun(c, pod view) {
	words, at := launcherWords(c), programOf(c)
	if len(words) == 0 {
		d.note(at, Changed, "no horovodrun and no mpirun could be read in it: say in spec.command what each process "+
			"runs")
		return
	}
	if before := beforeLauncher(c, words[0]); len(before) > 0 {
		note := at.note(Dropped, "what runs before the launcher is no part of a TrainingJob")
		note.Value = summary(before)
		d.notes = append(d.notes, note)
	}
	if path.Base(words[0]) != "horovodrun" { // ByteScheduler's
		d.note(at, Translated, "%s becomes horovodrun", path.Base(words[0]))
		d.set("spec.horovod.controller", "mpi", at)
	}
	words = words[1:]
	var options [][3]string // name, value, and both as they were written
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, value, inline := option(words[0])
		n := 1
		if !inline {
			n += values[name]
			value = strings.Join(words[1:min(n, len(words))], " ")
		}
		options = append(options, [3]string{name, value, strings.Join(words[:min(n, len(words))], " ")})
		words = words[min(n, len(words)):]
	}
	d.slots(options, at)
	d.count(options, at)
	for _, o := range options {
		d.horovodOption(o[0], o[1], o[2], at)
	}
	p := &program{command: words}
	if len(words) > 1 && strings.HasPrefix(words[1], scriptDir+"/") {
		p.command, p.args = nil, words[1:]
		d.script(p, pod, c)
	}
	d.set("spec.command", p.command, at)
	d.set("spec.args", p.args, at)
}

// launcherWords are the words from the launcher's own name on, also where a shell reads them as one.
func launcherWords(c view) []string {
	words := append(c.at("command").texts(), c.at("args").texts()...)
	if i := shell.TextIn(words); i >= 0 && !strings.ContainsAny(words[i], ";&|()$`\"'\\<>") {
		words = strings.Fields(words[i])
	}
	for i, word := range words {
		if slices.Contains([]string{"horovodrun", "mpirun", "mpiexec"}, path.Base(word)) {
			return words[i:]
		}
	}
	return nil
}

// beforeLauncher are the words before the launcher's, less the script by which tegen waits for the workers.
func beforeLauncher(c view, launcher string) []string {
	words := append(c.at("command").texts(), c.at("args").texts()...)
	if shell.TextIn(words) >= 0 {
		return nil
	}
	before := words[:max(slices.Index(words, launcher), 0)]
	scripts := []string{"/tegen/ssh/launcher.sh", "/tegen/ssh/worker.sh"}
	if len(before) == 2 && before[0] == "sh" && slices.Contains(scripts, before[1]) {
		return nil
	}
	return before
}

// horovodOption reads one option of the launcher.
func (d *draft) horovodOption(name, value, written string, at view) {
	slots, _ := d.get("spec.workers.processes").number()
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case slices.Contains(plumbing, name):
		if !known().MatchString(value) && !strings.Contains(value, d.name()+"-worker") {
			note := at.note(Translated, "tegen says by itself where the workers are")
			note.Value = written
			d.notes = append(d.notes, note)
		}
	case (name == "p" || name == "ssh-port") && err == nil:
		d.set("spec.ssh.port", n, at)
	case (name == "min-np" || name == "max-np") && err == nil && slots > 0:
		d.set("spec.workers."+name[:3], n/slots, at)
	case (name == "elastic-timeout" || name == "start-timeout") && err == nil:
		d.set("spec.horovod."+name[:len(name)-len("-timeout")]+"Timeout", durationText(n), at)
	case name == "reset-limit" && err == nil:
		d.set("spec.horovod.resetLimit", n, at)
	case name == "gloo" || name == "mpi":
		d.set("spec.horovod.controller", name, at)
	case name == "network-interfaces" && !strings.Contains(value, ","):
		d.set("spec.network.interface", value, at)
	case name == "x": // horovodrun hands all variables on
		if name, value, ok := strings.Cut(value, "="); ok && value != "$("+name+")" && value != "$"+name {
			d.add("spec.env", tree{"name": name, "value": value}, at)
		}
	default:
		note := at.note(Dropped, "a TrainingJob has no field for this option of the launcher")
		note.Value = written
		d.notes = append(d.notes, note)
	}
}

// slots reads the processes of each worker from what says where they are, where nothing has said it yet.
func (d *draft) slots(options [][3]string, at view) {
	if d.get("spec.workers.processes").isSet() {
		return
	}
	workers, _ := d.get("spec.workers.replicas").number()
	for _, o := range options {
		n, err := strconv.ParseInt(o[1], 10, 64)
		switch {
		case err == nil && (o[0] == "slots-per-host" || o[0] == "slots"):
			d.set("spec.workers.processes", n, at)
			return
		case err == nil && slices.Contains(totals, o[0]) && workers > 0 && n%workers == 0:
			d.set("spec.workers.processes", n/workers, at)
		}
	}
	if !d.get("spec.workers.processes").isSet() { // a TrainingJob has one for each accelerator
		d.set("spec.workers.processes", int64(1), at)
	}
}

// count holds the number of processes against what tegen renders: as many as all workers, or the fewest, have.
func (d *draft) count(options [][3]string, at view) {
	slots, ok := d.get("spec.workers.processes").number()
	if !ok {
		slots = 1
	}
	workers, _ := d.get("spec.workers.replicas").number()
	np, fewest := "", strconv.FormatInt(workers*slots, 10)
	for _, o := range options {
		switch {
		case slices.Contains(totals, o[0]):
			np = o[1]
		case o[0] == "min-np":
			fewest = o[1]
		}
	}
	if np != "" && np != fewest {
		note := at.note(Dropped, "tegen starts %s processes, one for each place", fewest)
		note.Value = "-np " + np
		d.notes = append(d.notes, note)
	}
}

// byteSchedulerFields are ByteScheduler's variables by their fields.
var byteSchedulerFields = map[string]string{
	"PARTITION": "partition", "CREDIT": "credit", "CREDIT_TUNING": "creditTuning",
	"PARTITION_TUNING": "partitionTuning", "ROOT_PORT": "rootPort", "TIMELINE": "timeline",
	"DEBUG": "debug",
}

// horovodEnv reads the variables of the launcher, which hands them on to all processes.
func (d *draft) horovodEnv(c view) {
	read := []string{"USE_BYTESCHEDULER", "BYTESCHEDULER_ROOT_IP"}
	for _, e := range c.at("env").items() {
		name := e.at("name").text()
		if strings.HasPrefix(name, "TEGEN_") {
			read = append(read, name)
		}
		switch seconds, isNumber := e.at("value").number(); {
		case name == job.HorovodStartTimeout && isNumber:
			d.set("spec.horovod.startTimeout", durationText(seconds), e)
			read = append(read, name)
		case (name == job.KeepHostNames4 || name == job.KeepHostNames5) && e.at("value").text() == "1":
			read = append(read, name) // as tegen sets it
		}
		field := byteSchedulerFields[strings.TrimPrefix(name, "BYTESCHEDULER_")]
		if field == "" || !strings.HasPrefix(name, "BYTESCHEDULER_") {
			continue
		}
		read = append(read, name)
		at, value := "spec.bytescheduler."+field, e.at("value")
		switch n, isNumber := value.number(); {
		case strings.HasSuffix(field, "Tuning") || field == "debug":
			d.set(at, value.text() == "1", e)
		case isNumber:
			d.set(at, n, e)
		default:
			d.set(at, value.text(), e)
		}
	}
	d.env(c, read...)
}
