package rule

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var launchRules = []Rule{
	part.Of2(jaxProcesses, part.Framework, part.Processes),
	part.Of3(jaxPort, part.Framework, part.JAX, part.TPU),
	part.Of2(launchedProcesses, ownLaunch, part.GPU),
	part.Of5(launchOptions, boundLaunch, part.Processes, part.Master, part.MaxRestarts, nodeUnit),
	part.Of3(unreachedFields, boundLaunch, part.Framework, part.DLRover),
	part.Of4(launchedNodes, boundLaunch, part.Framework, part.Gang, part.Counts),
	part.Of5(standaloneLaunch, part.Launch, part.Framework, part.Unlaunched, part.HostLaunched, part.MaxWorkers),
	part.Of3(idleAccelerators, ownTorchrun, part.Processes, part.GPU),
	part.Of3(ownRendezvous, rendezvousOptions, part.Target, part.Rendezvous),
	part.Of5(launchedAlone, part.Framework, part.Launcher, part.Command, part.Args, part.MaxWorkers),
	part.Of5(launchedTwice, part.LaunchedBy, part.Framework, part.Command, part.Args, part.MaxWorkers),
	part.Of5(runnable, part.LaunchedBy, part.Command, part.Args, part.Script, serversCommand),
	part.Of4(unlaunchedFields, part.Unlaunched, part.Master, part.Processes, part.Counts),
}

// jaxProcesses refuses several processes in a worker: each needs a number of its own, and JAX has no launcher.
func jaxProcesses(p *Problems, framework string, processes intstr.IntOrString) {
	if framework == job.FrameworkJAX && processes.IntVal != 1 {
		p.fail("spec.workers.processes", "requires",
			"one process drives all accelerators of a worker, and JAX has no launcher that starts more: leave this "+
				"out, or have more workers with fewer accelerators each")
	}
}

// jaxEnvironment refuses variables that tegen sets.
func jaxEnvironment(p *Problems, framework string, variables map[string]string) {
	for at, name := range variables {
		if framework == job.FrameworkJAX && slices.Contains(job.JAXVariables, name) {
			p.fail(at, "reserved", "%s is set by tegen: see spec.jax and spec.workers", name)
		}
	}
}

// The ports of libtpu in a pod with TPUs: of its metrics, of its processes, of the slices' coordinator and of JAX's own
// coordinator before and since 0.8.1 (jax-ml/jax, jax/_src/clusters/cloud_tpu_cluster.py).
var tpuPorts = []int32{8080, 8431, 8471, 8472, 8473, 8474, 8475, 8476, 8477, 8478, 8479}

// jaxPort refuses a port that something else in the pod listens on.
func jaxPort(p *Problems, framework string, jax *job.JAX, tpu bool) {
	if framework == job.FrameworkJAX && tpu && slices.Contains(tpuPorts, jax.Port) {
		p.fail("spec.jax.port", "duplicate", "%d is a port of the TPUs' own library in the same pod: choose another",
			jax.Port)
	}
}

// ownLaunch is an author's own call of a launcher; nil where there is none, or one of another framework's.
var ownLaunch = part.OfSpec("framework launcher command args", func(s *job.Spec) *job.Launch {
	l := s.Launch()
	if l == nil || s.Framework == job.FrameworkDLRover && !l.Dlrover() {
		return nil
	}
	return l
})

// boundLaunch is one that fields of the job say the same as. Without a rendezvous of the job's its options are all that
// it goes by, and pods may train each for itself.
var boundLaunch = part.New("framework launcher command args", func(j *job.Job) *job.Launch {
	if j.Spec.Unlaunched() {
		return nil
	}
	return ownLaunch.Of(j)
})

// launchedProcesses refuses more processes than accelerators.
func launchedProcesses(p *Problems, l *job.Launch, gpu int64) {
	if o := l.Option("nproc_per_node"); o != nil {
		if n, err := strconv.Atoi(o.Value); err == nil && gpu > 0 && int64(n) > gpu {
			p.fail(o.Path, "order", "%s is above spec.resources.gpu %d: each process needs an accelerator of its own",
				o, gpu)
		}
	}
}

var nodeUnit = part.OfSpec("dlrover.nodeUnit", func(s *job.Spec) int32 { return s.DLRover.NodeUnit })

// launchOptions holds an author's own call of a launcher against the fields that say the same: options win over
// variables.
func launchOptions(
	p *Problems, l *job.Launch, processes intstr.IntOrString, master bool, maxRestarts, nodeUnit int32,
) {
	for _, f := range []struct{ field, option, value string }{
		{"workers.processes", "nproc_per_node", processes.String()},
		{"rendezvous.maxRestarts", "max_restarts", strconv.Itoa(int(maxRestarts))},
		{"dlrover.nodeUnit", "node_unit", strconv.Itoa(int(nodeUnit))},
	} {
		if f.field == "workers.processes" && master && f.value == "auto" {
			continue // the operator counts one for each pod then, and the option says how many torchrun starts there
		}
		if o := l.Option(f.option); o != nil && o.Value != f.value && p.IsSet("spec."+f.field) {
			p.fail(o.Path, "order", "%s is not spec.%s %s: say it once", o, f.field, f.value)
		}
	}
}

// unreachedFields refuses fields that an author's dlrover-run does not get to know: torchrun reads variables, but its
// master and its examples go by options.
func unreachedFields(p *Problems, l *job.Launch, framework string, d *job.DLRover) {
	if l == nil || framework != job.FrameworkDLRover {
		return
	}
	options := map[string]string{
		"workers.processes": "nproc_per_node", "rendezvous.maxRestarts": "max_restarts",
		"dlrover.nodeUnit": "node_unit", "rendezvous.lastCall": "rdzv_conf", "rendezvous.joinTimeout": "rdzv_conf",
		"rendezvous.conf": "rdzv_conf",
	}
	if d.NetworkCheck {
		options["dlrover.networkCheck"] = "network_check"
	}
	if d.ExcludeStraggler {
		options["dlrover.excludeStraggler"] = "exclude_straggler"
	}
	for field, option := range options {
		if p.IsSet("spec."+field) && l.Option(option) == nil {
			p.fail("spec."+field, "requires", "the command starts %s itself, so this field has no effect: add --%s "+
				"there, or leave the launcher to tegen", l.Program, option)
		}
	}
}

var nodeRange = lazy.Regexp(`^([0-9]+)(?::(.*))?$`)

// launchedNodes reads --nnodes: MIN:MAX, or one number for both. What a scheduler places must be what rendezvous waits
// for.
func launchedNodes(p *Problems, l *job.Launch, framework string, g *job.Gang, w part.Count) {
	o := l.Option("nnodes")
	if o == nil {
		if l != nil && framework == job.FrameworkDLRover && l.Option("auto_config") == nil && w.Max > 1 {
			p.fail("spec.command", "requires", "%s starts with one node where --nnodes is missing: add "+
				"--nnodes=%d:$NODE_NUM", l.Program, w.Min)
		}
		return
	}
	m := nodeRange().FindStringSubmatch(o.Value)
	if m == nil {
		return // a variable of the pod's, unknown here
	}
	least, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return
	}
	if g.Active() && int64(g.MinAvailable) < least {
		p.fail("spec.gang.minAvailable", "order",
			"%d is below the %d of --nnodes=%s: the pods placed could never rendezvous", g.MinAvailable, least, o.Value)
	}
	if m[2] == "" && w.Min == w.Max {
		if least != int64(w.Max) {
			p.fail(o.Path, "order", "%s is not spec.workers.replicas %d: make them agree, or leave it out", o, w.Max)
		}
		return
	}
	if least != int64(w.Min) {
		p.fail(o.Path, "order", "--nnodes=%s starts with %d, spec.workers.min is %d: make them agree", o.Value, least,
			w.Min)
	}
	if n, err := strconv.Atoi(cmp.Or(m[2], m[1])); err == nil && n != int(w.Max) {
		p.fail(o.Path, "order", "--nnodes=%s ends with %d, spec.workers.max is %d: make them agree", o.Value, n, w.Max)
	}
}

// standaloneLaunch refuses an option that leaves workers without each other. Launchers of hosts refuse any torchrun.
func standaloneLaunch(
	p *Problems, l *job.Launch, framework string, unlaunched, hostLaunched bool, workers int32,
) {
	o := l.Option("standalone")
	if o == nil || l.Program == "" || unlaunched || hostLaunched || workers < 2 {
		return
	}
	remedy := ""
	if framework == job.FrameworkTorchelastic {
		remedy = "; or set launcher: none, where that is meant"
	}
	p.fail(o.Path, "order", "--standalone has each of %d workers train alone: leave it out, and they train together%s",
		workers, remedy)
}

// ownTorchrun is an author's own call that goes by what tegen sets up; without a rendezvous of the job's, and with a
// Master, its options are all that it goes by.
var ownTorchrun = part.OfSpec("framework launcher command args workers.master", func(s *job.Spec) *job.Launch {
	l := s.Launch()
	if l == nil || l.Program == "" || s.Unlaunched() || s.Framework != job.FrameworkTorchelastic || s.Workers.Master {
		return nil
	}
	return l
})

// idleAccelerators refuses an option that leaves accelerators without a process.
func idleAccelerators(p *Problems, l *job.Launch, processes intstr.IntOrString, gpu int64) {
	o := l.Option("nproc_per_node")
	if o == nil || p.IsSet("spec.workers.processes") {
		return
	}
	n, err := strconv.Atoi(o.Value)
	if err == nil && gpu > int64(n) && processes.StrVal == "" && n != int(processes.IntVal) {
		p.fail(o.Path, "order", "%s is below spec.resources.gpu %d: leave it out, or write spec.workers.processes: %d "+
			"in its place, where each process drives several accelerators", o, gpu, n)
	}
}

// rendezvousOptions are those of an author's torchrun that win over what tegen sets up for it.
var rendezvousOptions = part.New("framework launcher command args workers.master env envFrom",
	func(j *job.Job) (all []*job.LaunchOption) {
		for _, name := range []string{"rdzv_backend", "rdzv_endpoint", "rdzv_id", "master_addr", "master_port"} {
			if o := ownTorchrun.Of(j).Option(name); o != nil && !follows(&j.Spec, o.Value) {
				all = append(all, o)
			}
		}
		return all
	})

// ofVariable finds the variables in a value, as the kubelet and a shell read them.
var ofVariable = lazy.Regexp(`\$(?:\(([A-Za-z_]\w*)\)|\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*))`)

// follows says whether a value is of variables that a worker has: what they hold is the author's business, or tegen's
// own. Those in what a shell runs may be its own.
func follows(s *job.Spec, value string) bool {
	found := ofVariable().FindAllStringSubmatch(value, -1)
	for _, m := range found {
		if name := m[1]; name != "" && len(s.EnvFrom) == 0 && !s.HasVariable(name) {
			return false
		}
	}
	return len(found) > 0
}

// ownRendezvous refuses options that name another rendezvous than the job's, and leave workers without each other.
func ownRendezvous(p *Problems, options []*job.LaunchOption, target string, z *job.Rendezvous) {
	const wins = "%s wins over what tegen sets for the rendezvous: leave it out"
	for _, o := range options {
		switch o.Name {
		case "rdzv_backend":
			if o.Value == "static" && target == job.TargetTrainJob || o.Value == z.Backend {
				continue
			}
			remedy := ""
			if slices.Contains([]string{job.BackendC10d, job.BackendEtcd, job.BackendEtcdV2}, o.Value) {
				remedy = ", or write spec.rendezvous.backend: " + o.Value + " in its place"
			}
			p.fail(o.Path, "order", wins+"%s", o, remedy)
		case "rdzv_endpoint":
			if o.Value != z.Endpoint {
				p.fail(o.Path, "order", wins+", or write spec.rendezvous: {store: external, endpoint: HOST:PORT} in "+
					"its place, for a store that exists", o)
			}
		case "rdzv_id":
			if p.IsSet("spec.rendezvous.id") && o.Value != z.ID {
				p.fail(o.Path, "order", "%s is not spec.rendezvous.id %s: say it once", o, z.ID)
			}
		default:
			p.fail(o.Path, "order", "%s is of a static rendezvous, which this job does not have: leave it out; worker "+
				"0 is found by spec.rendezvous", o)
		}
	}
}

// launchedAlone refuses a launcher of hosts in a job whose pods each start it: none of them knows of the others.
func launchedAlone(p *Problems, framework, launcher string, command, args []string, workers int32) {
	words := slices.Concat(command, args)
	if framework != job.FrameworkTorchelastic || launcher != job.LauncherEntrypoint || workers < 2 ||
		len(command) == 0 || job.ShellText(words) >= 0 {
		return
	}
	if at, m := job.LaunchIn(words); m != nil && job.StartsHosts(m[1]+m[2]) {
		p.fail(job.WordPath(command, at), "requires", "each of %d workers would start %s, which knows nothing of the "+
			"others: %s; or set launcher: none, where that is meant", workers, m[1]+m[2], job.LeaveTo(m[1]+m[2]))
	}
}

// launchedTwice refuses a launcher of the author's where tegen puts one before the command: each would start its own
// processes, and the inner one has no part in the others' rendezvous.
func launchedTwice(p *Problems, by, framework string, command, args []string, workers int32) {
	torchrun := by == job.LauncherTorchrun
	if by == "" || torchrun && (len(command) == 0 || job.Launches(command)) {
		return // without a command the first argument is a file that Python reads
	}
	at, m := job.LaunchIn(slices.Concat(command, args))
	if m == nil {
		return
	}
	name := strings.Join(strings.Fields(m[1]+m[2]), " ")
	ofHosts, ofTorch := job.HostLauncher().MatchString(" "+name+" "), job.LauncherWord().MatchString(name)
	if ofHosts && by == "horovodrun" || (ofHosts || ofTorch) && by == job.BPSLaunch {
		return // horovodProgram and bytePSProgram say so
	}
	remedy := "leave it and its options out"
	switch owner := job.OwnersOf[name]; {
	case owner != "" && framework == job.FrameworkTorchelastic:
		remedy = job.LeaveTo(name)
		if workers < 2 {
			remedy += ", or set launcher: entrypoint"
		}
	case torchrun && !ofTorch: // torchrun starts what it would start
		remedy += ", or set launcher: entrypoint"
	case torchrun:
		remedy = "set launcher: entrypoint, or " + remedy
	case framework == job.FrameworkMPI:
		remedy += ", or set mpi.launch: command"
	case framework == job.FrameworkHorovod && ofTorch && owner == "":
		remedy += ", or leave out framework: horovod, and " + name + " starts them"
	}
	p.fail(job.WordPath(command, at), "requires", "%s starts processes itself, and tegen puts %s before it: %s", name,
		by, remedy)
}

var serversCommand = part.OfSpec("servers.command", func(s *job.Spec) []string { return s.Servers.Command })

// runnable refuses what cannot be started: a script that no interpreter is named for, a line in place of words, or a
// launcher that was removed.
func runnable(p *Problems, by string, command, args []string, script *job.Script, servers []string) {
	all := slices.Concat(command, args)
	for i := range max(0, len(all)-1) {
		if path.Base(all[i]) == names.Rendezvous && all[i+1] == "run" {
			p.fail(job.WordPath(command, i), "requires", "\"%s run\" was removed: start torchrun, and set rendezvous: "+
				"{backend: c10d, store: etcd, proxy: true}", names.Rendezvous)
			return
		}
	}
	words, at := command, "spec.command[0]"
	runs := slices.Contains([]string{"horovodrun", job.LaunchMpirun, job.BPSLaunch}, by)
	if len(words) == 0 && script == nil && runs {
		words, at = args, "spec.args[0]" // these start programs; torchrun and dlrover-run read a script by themselves
	}
	startable(p, by, words, at)
	startable(p, by, servers, "spec.servers.command[0]")
}

// startable refuses a first word that is no program.
func startable(p *Problems, by string, words []string, at string) {
	if len(words) == 0 || strings.Contains(words[0], "$(") { // what a variable holds is unknown here
		return
	}
	switch first := words[0]; {
	case first == "":
		p.fail(at, "requires", "is empty: name a program")
	case len(words) == 1 && strings.ContainsAny(first, " \t\n"):
		remedy := "write " + structural.FlowList(strings.Fields(first))
		if _, m := job.LaunchIn(strings.Fields(first)); m != nil && by != "" {
			remedy = "write the program and its arguments alone, each as an item of the list: " + by +
				" is put before them"
		} else if strings.ContainsAny(first, "|&;<>()$\"'`*\\\n{},#") {
			remedy = "give it to one, as [sh, -c, TEXT]"
		}
		p.fail(at, "requires", "is one word, of which no shell makes several: %s", remedy)
	case scriptName().MatchString(first):
		p.fail(at, "requires", "%s is a script and no program on the PATH: write %s %s", first, interpreter(first),
			first)
	}
}

// scriptName is a script without its directory, which is looked for on the PATH.
var scriptName = lazy.Regexp(`^[^/]+\.(py|sh)$`)

func interpreter(script string) string {
	if strings.HasSuffix(script, ".sh") {
		return "sh"
	}
	return "python"
}

// unlaunchedFields refuses what a program that is told of no rendezvous would never learn.
func unlaunchedFields(p *Problems, unlaunched, master bool, processes intstr.IntOrString, w part.Count) {
	if !unlaunched {
		return
	}
	if !master && p.IsSet("spec.rendezvous") && !p.Merged("spec.rendezvous") {
		p.fail("spec.rendezvous", "requires", "the program is told of none with launcher none, so this field has no "+
			"effect: leave it out, or set launcher: entrypoint")
	}
	if p.IsSet("spec.workers.processes") && processes.IntVal != 1 {
		p.fail("spec.workers.processes", "requires",
			"nothing starts more than the one program with launcher none: leave it out, or set another launcher")
	}
	if w.Min != w.Max {
		p.fail("spec.workers.min", "requires", "an elastic job (min %d, max %d) meets anew when workers come and go, "+
			"and with launcher none nobody tells the program: set another launcher", w.Min, w.Max)
	}
}
