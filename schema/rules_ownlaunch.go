package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

var ownLaunchRules = []rule{
	{(*validation).ownLaunch, "framework target launcher command args workers resources.gpu rendezvous env envFrom"},
	{(*validation).launchedAlone, "framework launcher command args workers script"},
}

// ownLaunch refuses options of an author's torchrun that win over what tegen sets up for it, and leave workers without
// each other or accelerators without a process. Where a program is told of no rendezvous they are all that it goes by.
func (r *validation) ownLaunch() {
	s := &r.Spec
	l := s.Launch()
	if l == nil || l.Program == "" || s.Unlaunched() {
		return
	}
	if o := l.Option("standalone"); o != nil && s.Workers.Max > 1 && !s.HostLaunched() { // which refuse the launcher
		remedy := ""
		if s.Framework == FrameworkTorchelastic {
			remedy = "; or set launcher: none, where that is meant"
		}
		r.fail(o.path, "order", "--standalone has each of %d workers train alone: leave it out, and they train "+
			"together%s", s.Workers.Max, remedy)
	}
	if s.Framework != FrameworkTorchelastic || s.Workers.Master {
		return
	}
	if o := l.Option("nproc_per_node"); o != nil && !r.IsSet("spec.workers.processes") {
		n, err := strconv.Atoi(o.Value)
		if p := s.Workers.Processes; err == nil && s.Resources.GPU > int64(n) && p.StrVal == "" && n != int(p.IntVal) {
			r.fail(o.path, "order", "%s is below spec.resources.gpu %d: leave it out, or write "+
				"spec.workers.processes: %d in its place, where each process drives several accelerators", o,
				s.Resources.GPU, n)
		}
	}
	for _, name := range []string{"rdzv_backend", "rdzv_endpoint", "rdzv_id", "master_addr", "master_port"} {
		if o := l.Option(name); o != nil && !r.follows(o) {
			r.ownRendezvous(o)
		}
	}
}

// ownRendezvous refuses an option that names another rendezvous than the job's.
func (r *validation) ownRendezvous(o *LaunchOption) {
	s, z := &r.Spec, &r.Spec.Rendezvous
	const wins = "%s wins over what tegen sets for the rendezvous: leave it out"
	switch o.Name {
	case "rdzv_backend":
		if o.Value == "static" && s.Target == TargetTrainJob || o.Value == z.Backend {
			return
		}
		remedy := ""
		if slices.Contains([]string{BackendC10d, BackendEtcd, BackendEtcdV2}, o.Value) {
			remedy = ", or write spec.rendezvous.backend: " + o.Value + " in its place"
		}
		r.fail(o.path, "order", wins+"%s", o, remedy)
	case "rdzv_endpoint":
		if o.Value == z.Endpoint {
			return
		}
		r.fail(o.path, "order", wins+", or write spec.rendezvous: {store: external, endpoint: HOST:PORT} in its "+
			"place, for a store that exists", o)
	case "rdzv_id":
		if r.IsSet("spec.rendezvous.id") && o.Value != z.ID {
			r.fail(o.path, "order", "%s is not spec.rendezvous.id %s: say it once", o, z.ID)
		}
	default:
		r.fail(o.path, "order", "%s is of a static rendezvous, which this job does not have: leave it out; worker 0 "+
			"is found by spec.rendezvous", o)
	}
}

// ofVariable finds the variables in a value, as the kubelet and a shell read them.
var ofVariable = lazy.Regexp(`\$(?:\(([A-Za-z_]\w*)\)|\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*))`)

// follows says whether a value is of variables that a worker has: what they hold is the author's business, or tegen's
// own. Those in what a shell runs may be its own.
func (r *validation) follows(o *LaunchOption) bool {
	found := ofVariable().FindAllStringSubmatch(o.Value, -1)
	for _, m := range found {
		if name := m[1]; name != "" && len(r.Spec.EnvFrom) == 0 && !r.Spec.hasVariable(name) {
			return false
		}
	}
	return len(found) > 0
}

// hasVariable says whether a worker has a variable: the author's, or one by which tegen tells of the rendezvous.
func (s *Spec) hasVariable(name string) bool {
	return slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == name }) || strings.HasPrefix(name, "PET_") ||
		s.Launcher == LauncherEntrypoint && tutorialEnv[name]
}

// launchedAlone refuses a launcher of hosts in a job whose pods each start it: none of them knows of the others.
func (r *validation) launchedAlone() {
	s := &r.Spec
	words := slices.Concat(s.Command, s.Args)
	if s.Framework != FrameworkTorchelastic || s.Launcher != LauncherEntrypoint || s.Workers.Max < 2 ||
		len(s.Command) == 0 || shellText(words) >= 0 {
		return
	}
	at, m := launchIn(words)
	if m == nil || !startsHosts(m[1]+m[2]) {
		return
	}
	r.fail(s.wordPath(at), "requires", "each of %d workers would start %s, which knows nothing of the others: %s; or "+
		"set launcher: none, where that is meant", s.Workers.Max, m[1]+m[2], leaveTo(m[1]+m[2]))
}

// aloneNotes tell of what launchedAlone refuses, where a shell starts it or the author wants no rendezvous: a script
// may well have one pod start it.
func (s *Spec) aloneNotes() []string {
	words := slices.Concat(s.Command, s.Args)
	if s.Framework != FrameworkTorchelastic || s.LaunchedBy() != "" || s.Workers.Max < 2 || len(s.Command) == 0 ||
		s.Volcano.Plugins.MPI != nil || s.Volcano.Plugins.SSH != nil { // which name the others' hosts, with keys
		return nil
	}
	at, m := launchIn(words)
	if m == nil {
		return nil
	}
	name := strings.Join(strings.Fields(m[1]+m[2]), " ")
	text := strings.Join(words, " ")
	alone := startsHosts(name) || oneHost().MatchString(name) && !namesHosts().MatchString(text) ||
		s.Unlaunched() && s.launchesAlone()
	if !alone || strings.Contains(text, "JOB_COMPLETION_INDEX") {
		return nil
	}
	note := fmt.Sprintf("%s: each of %d workers starts %s for itself, which knows nothing of the others",
		s.wordPath(at), s.Workers.Max, name)
	switch {
	case ownersOf[name] != "":
		note += "; for one training of all of them, " + leaveTo(name)
	case oneHost().MatchString(name):
		note += fmt.Sprintf("; for one training of all of them, set launcher: torchrun, and leave %s and its options "+
			"out", name)
	default: // torchrun itself
		note += "; for one training of all of them, set launcher: entrypoint"
	}
	return []string{note}
}

// oneHost matches launchers of PyTorch's programs that start the processes of their own host, unless an option names
// the other hosts.
var oneHost = lazy.Regexp(`^(deepspeed|deepspeed\.launcher\.runner|accelerate launch|` +
	`accelerate\.commands\.launch|colossalai run|composer)$`)

// namesHosts matches their options by which each host learns of the others. A configuration file may hold them.
var namesHosts = lazy.Regexp(`(^|\s)--(machine[-_]rank|main[-_]process[-_]ip|config[-_]file|node[-_]rank)\b`)

// launchesAlone reports whether the author's torchrun starts a training of one pod: nothing names the number of nodes,
// or --standalone does.
func (s *Spec) launchesAlone() bool {
	l := s.Launch()
	if l.Option("standalone") != nil {
		return true
	}
	named := len(s.EnvFrom) > 0 || slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == "PET_NNODES" })
	return l != nil && l.Program != "" && !l.dlrover() && l.Option("nnodes") == nil && !named
}

// startsHosts says whether a launcher starts processes of all hosts that it is told of, and needs no other beside it.
func startsHosts(name string) bool {
	return hostLauncher().MatchString(" "+name+" ") || strings.HasPrefix(name, "horovod.runner")
}

// ownersOf are the frameworks whose launchers these are.
var ownersOf = map[string]string{
	"bpslaunch": "framework: bytescheduler", "dlrover-run": "framework: dlrover",
	"dlrover.trainer.torch.elastic_run": "framework: dlrover",
	"horovodrun":                        "framework: horovod", "horovod.runner": "framework: horovod",
	"horovod.runner.launch": "framework: horovod", "mpiexec": "framework: mpi", "mpirun": "framework: mpi",
}

// leaveTo is what to write where a launcher of another framework stands.
func leaveTo(name string) string {
	return fmt.Sprintf("set %s, and leave %s and its options out", ownersOf[name], name)
}
