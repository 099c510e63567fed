package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// mpirunValues is how many values the options of Open MPI's mpirun and of hydra's take (mpirun(1) of Open MPI 4.1, the
// mpiexec of MPICH 4.2, Intel's reference of 2021.13). A call with an option that is not here stays as it is.
var mpirunValues = func() map[string]int {
	all := map[string]int{}
	for n, names := range []string{
		"allow-run-as-root oversubscribe nooversubscribe tag-output timestamp-output merge-stderr-to-stdout q quiet " +
			"v verbose V display-map display-allocation display-topo report-bindings bynode byslot nolocal d " +
			"disable-recovery enable-recovery use-hwthread-cpus leave-session-attached continuous pernode " +
			"prepend-rank l genvall genvnone envall envnone print-all-exitcodes print-rank-map disable-auto-cleanup " +
			"rr grr ordered-output ilp64",
		"np n c N npernode ppn perhost npersocket H host hosts hostfile machinefile machine f default-hostfile x " +
			"bind-to map-by rank-by prefix wdir wd path output-filename stdin xterm genvlist envlist iface launcher " +
			"bootstrap rmk timeout am tune cpu-set cpu-list cpus-per-proc cpus-per-rank rankfile rf personality " +
			"max-restarts report-uri localhost output display runtime-options",
		"mca gmca omca pmixmca prtemca genv env",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = n
		}
	}
	return all
}()

// mpirunCall is a call of mpirun.
type mpirunCall struct {
	program string     // mpirun itself, as it is called
	options [][]string // each with its values
	rest    []string   // what each process runs
}

// mpirunIn reads the words of a call, nil where they are none that is understood.
func mpirunIn(words []string) *mpirunCall {
	if len(words) == 0 || !slices.Contains([]string{"mpirun", "mpiexec", "mpiexec.hydra"}, path.Base(words[0])) ||
		slices.Contains(words, ":") { // which starts several programs
		return nil
	}
	call := &mpirunCall{program: words[0]}
	for words = words[1:]; len(words) > 0 && strings.HasPrefix(words[0], "-"); {
		n, known := mpirunValues[strings.TrimLeft(words[0], "-")]
		if !known || len(words) <= n {
			return nil
		}
		call.options = append(call.options, words[:n+1])
		words = words[n+1:]
	}
	call.rest = words
	return call
}

// optionName is an option without its dashes, of which mpirun takes one or two.
func optionName(option []string) string { return strings.TrimLeft(option[0], "-") }

// number is the value of the last of these options, 0 where there is none, and -1 for one that is no number.
func (c *mpirunCall) number(names ...string) (n int64) {
	for _, o := range c.options {
		if slices.Contains(names, optionName(o)) {
			var err error
			if n, err = strconv.ParseInt(o[1], 10, 64); err != nil {
				return -1
			}
		}
	}
	return n
}

// processes are those of each worker that the call starts, 0 where they are not the same in each, or unknown.
func (c *mpirunCall) processes(workers, slots int64) int64 {
	all, each := c.number("np", "n", "c"), c.number("N", "npernode", "ppn", "perhost")
	switch {
	case all < 0 || each < 0 || workers == 0:
		return 0
	case each > 0 && (all == 0 || all == each*workers):
		return each
	case each == 0 && (all == 0 || all == slots*workers):
		return slots
	}
	return 0
}

// launcherLine is what the launcher runs, without the script by which tegen waits for the workers.
func launcherLine(c view) []string {
	words := append(c.at("command").texts(), c.at("args").texts()...)
	if len(words) > 1 && words[0] == "sh" &&
		slices.Contains([]string{"/tegen/ssh/launcher.sh", "/tegen/ssh/worker.sh"}, words[1]) {
		return words[2:]
	}
	return words
}

// mpi reads the launcher of a job of framework mpi: a call of mpirun, or any other line, which stays as it is.
func (d *draft) mpi(c, pod view) {
	line, at := launcherLine(c), programOf(c)
	workers, _ := d.get("spec.workers.replicas").number()
	slots, told := d.get("spec.workers.processes").number()
	call := mpirunIn(line)
	own, overSSH := c.at("env").item("name", "TEGEN_SLOTS").at("value").number()
	switch {
	case overSSH:
		slots = own
	case !told: // one worker of a Job of tegen's
		slots = 1
		if call != nil && workers > 0 {
			slots = max(call.number("np")/workers, 1)
		}
	}
	var processes int64
	if call != nil {
		processes = call.processes(workers, slots)
	}
	var set []string
	if processes == 0 {
		d.set("spec.mpi.launch", job.LaunchCommand, at)
		processes = slots
	} else {
		line = call.rest
		set = d.mpirunOptions(call, at)
	}
	if slotsPerWorker := d.origin["spec.workers.processes"]; told && processes != slots {
		d.note(slotsPerWorker, Translated, "mpirun starts %d processes on each worker", processes)
		slotsPerWorker.markTranslated()
	}
	d.set("spec.workers.processes", processes, at)
	if p := (&program{command: line}); len(line) > 1 && strings.HasPrefix(line[1], scriptDir+"/") {
		p.command, p.args = nil, line[1:]
		d.script(p, pod, c)
		d.set("spec.args", p.args, at)
		line = p.command
	}
	d.set("spec.command", line, at)
	if len(line) == 0 && !d.get("spec.script").isSet() {
		d.note(at, Changed, "what the image runs by itself is unknown here: say in spec.command what starts the "+
			"processes")
	}
	d.mpiEnv(c, set)
}

// mpirunOptions reads the options of a call: those that tegen writes itself are left out, variables are the pods', and
// the others stay. It returns the variables that are set.
func (d *draft) mpirunOptions(call *mpirunCall, at view) (set []string) {
	if dir := path.Dir(call.program); dir != "." {
		d.set("spec.mpi.prefix", path.Dir(dir), at)
	}
	var kept []string
	for _, o := range call.options {
		switch name := optionName(o); {
		case slices.Contains(strings.Fields("np n c N npernode ppn perhost H host hosts hostfile machinefile machine "+
			"f default-hostfile allow-run-as-root prefix genvall envall genvlist envlist genvnone"), name):
		case name == "x":
			variable, value, given := strings.Cut(o[1], "=")
			if given && value != "$("+variable+")" && value != "$"+variable {
				d.add("spec.env", tree{"name": variable, "value": value}, at)
				set = append(set, variable)
			}
		case name == "genv" || name == "env":
			d.add("spec.env", tree{"name": o[1], "value": o[2]}, at)
			set = append(set, o[1])
		case strings.HasSuffix(name, "mca") && slices.Contains(sshParameters, o[1]):
			if m := sshPortOption().FindStringSubmatch(o[2]); m != nil {
				d.sshPort(m[1], at)
			}
		case name == "bind-to" && o[1] == "none":
		default:
			kept = append(kept, o...)
		}
	}
	d.set("spec.mpi.options", kept, at)
	return set
}

// sshParameters are those of Open MPI that say how it dials, and where the hosts are.
var sshParameters = []string{
	"plm_rsh_args", "plm_ssh_args", "orte_keep_fqdn_hostnames", "prte_keep_fqdn_hostnames", "orte_default_hostfile",
	"plm_rsh_no_tree_spawn",
}

var (
	sshPortOption = lazy.Regexp(`(?:^|\s)-p\s*([0-9]+)`)
	// the port in a line that a shell reads: of sshd, of ssh, or of what mpirun gives ssh
	sshPortInLine = lazy.Regexp(`(?:\bsshd?\b|plm_(?:rsh|ssh)_args)[^\n;|&]*?\s["']?-p\s*([0-9]+)`)
)

// sshPort sets the port of sshd, if others than root may listen there.
func (d *draft) sshPort(text string, at view) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 1024 {
		d.set("spec.ssh.port", n, at)
	}
}

// portOfSSH reads where the workers' sshd listens, which a launcher's own line may name.
func (d *draft) portOfSSH(launcher, worker view) {
	for _, c := range []view{launcher, worker} {
		for _, v := range append(append(c.at("command").items(), c.at("args").items()...), c.at("env").items()...) {
			said := v.text() + v.at("name").text() + " " + v.at("value").text()
			if m := sshPortInLine().FindStringSubmatch(said); m != nil {
				d.sshPort(m[1], v)
				return
			}
		}
	}
	if port := worker.at("readinessProbe", "tcpSocket", "port"); port.isSet() {
		d.sshPort(port.text(), port)
	}
}

// mpiEnv reads the variables of the launcher, but those that are set already.
func (d *draft) mpiEnv(c view, set []string) {
	env := c.at("env")
	face := env.item("name", "NCCL_SOCKET_IFNAME").at("value").text()
	own := map[string]string{
		"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "I_MPI_PIN": "off",
		"OMPI_MCA_btl_tcp_if_include": face, "OMPI_MCA_oob_tcp_if_include": face,
		"HYDRA_IFACE": face, "I_MPI_HYDRA_IFACE": face,
		job.KeepHostNames4: "1", job.KeepHostNames5: "1",
	}
	for _, e := range env.items() {
		name, value := e.at("name").text(), e.at("value")
		seconds, isNumber := value.number()
		switch {
		case name == "TEGEN_SSH_PORT":
			d.sshPort(value.text(), e)
		case name == "TEGEN_START_SECONDS" && isNumber:
			d.set("spec.mpi.startTimeout", durationText(seconds), e)
		case strings.HasPrefix(name, "TEGEN_"):
		case own[name] != "" && value.text() == own[name]:
			e.markTranslated()
		case slices.Contains(sshParameters, strings.TrimPrefix(strings.TrimPrefix(name, "PRTE_MCA_"), "OMPI_MCA_")):
			d.note(e, Translated, "ssh knows port and keys from its own configuration")
			e.markTranslated()
		default:
			continue
		}
		set = append(set, name)
	}
	d.env(c, set...)
}

// hydraDNS reads the cluster's domain from where the pods of hydra look for the launcher.
func (d *draft) hydraDNS(pod view) {
	for _, search := range pod.at("dnsConfig", "searches").items() {
		if _, domain, ok := strings.Cut(search.text(), "."+d.namespace()+".svc."); ok {
			d.set("spec.network.clusterDomain", domain, search)
		}
	}
}

// implementation reads whose MPI a Job of tegen's has, which no field of it says: hydra's pods look for the launcher by
// the first part of its name, and Intel's bind nothing.
func (d *draft) implementation(c, pod view, line []string) {
	call := mpirunIn(line)
	alone := call != nil && call.number("ppn") > 0
	switch {
	case c.at("env").item("name", "I_MPI_PIN").isSet() || alone:
		d.set("spec.mpi.implementation", job.MPIIntel, c)
	case pod.at("dnsConfig", "searches").isSet(),
		call != nil && !slices.ContainsFunc(call.options, func(o []string) bool { return optionName(o) == "bind-to" }):
		d.set("spec.mpi.implementation", job.MPICH, c)
	}
}
