package rule

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
)

var jaxRules = []oldRule{
	{(*Validation).jaxProcesses, "framework workers.processes"},
	{(*Validation).jaxEnvironment, "framework env podTemplate roles"},
	{(*Validation).jaxPort, "framework jax resources.gpu resources.gpuResource"},
}

// jaxProcesses refuses several processes in a worker: each needs a number of its own, and JAX has no launcher.
func (r *Validation) jaxProcesses() {
	if p := r.Spec.Workers.Processes; r.Spec.Framework == job.FrameworkJAX && p.IntVal != 1 {
		r.fail("spec.workers.processes", "requires",
			"one process drives all accelerators of a worker, and JAX has no launcher that starts more: leave this "+
				"out, or have more workers with fewer accelerators each")
	}
}

// jaxEnvironment refuses variables that tegen sets.
func (r *Validation) jaxEnvironment() {
	if r.Spec.Framework != job.FrameworkJAX {
		return
	}
	check := func(at, name string) {
		if slices.Contains(job.JAXVariables, name) {
			r.fail(at, "reserved", "%s is set by tegen: see spec.jax and spec.workers", name)
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}

// The ports of libtpu in a pod with TPUs: of its metrics, of its processes, of the slices' coordinator and of JAX's own
// coordinator before and since 0.8.1 (jax-ml/jax, jax/_src/clusters/cloud_tpu_cluster.py).
var tpuPorts = []int32{8080, 8431, 8471, 8472, 8473, 8474, 8475, 8476, 8477, 8478, 8479}

// jaxPort refuses a port that something else in the pod listens on.
func (r *Validation) jaxPort() {
	if p := r.Spec.JAX.Port; r.Spec.Framework == job.FrameworkJAX && r.Spec.TPU() && slices.Contains(tpuPorts, p) {
		r.fail("spec.jax.port", "duplicate", "%d is a port of the TPUs' own library in the same pod: choose another", p)
	}
}

var launchRules = []oldRule{
	{(*Validation).launch, "framework launcher command args workers resources.gpu rendezvous dlrover gang"},
}

// launch holds an author's own call of a launcher against the fields that say the same: options win over variables, and
// what a scheduler places must be what rendezvous waits for.
func (r *Validation) launch() {
	s := &r.Spec
	l := s.Launch()
	if l == nil || s.Framework == job.FrameworkDLRover && !l.Dlrover() {
		return
	}
	if o := l.Option("nproc_per_node"); o != nil {
		if n, err := strconv.Atoi(o.Value); err == nil && s.Resources.GPU > 0 && int64(n) > s.Resources.GPU {
			r.fail(o.Path, "order",
				"%s is above spec.resources.gpu %d: each process needs an accelerator of its own", o, s.Resources.GPU)
		}
	}
	if s.Unlaunched() {
		return // its options are all that it goes by, and pods may train each for itself
	}
	for _, f := range launchFields(s) {
		if f.field == "workers.processes" && s.Workers.Master && f.value == "auto" {
			continue // the operator counts one for each pod then, and the option says how many torchrun starts there
		}
		if o := l.Option(f.option); o != nil && o.Value != f.value && r.IsSet("spec."+f.field) {
			r.fail(o.Path, "order", "%s is not spec.%s %s: say it once", o, f.field, f.value)
		}
	}
	if s.Framework == job.FrameworkDLRover {
		r.unreached(l)
	}
	r.launchNodes(l)
}

// launchField is a field with the option that says the same.
type launchField struct{ field, option, value string }

func launchFields(s *job.Spec) []launchField {
	return []launchField{
		{"workers.processes", "nproc_per_node", s.Workers.Processes.String()},
		{"rendezvous.maxRestarts", "max_restarts", strconv.Itoa(int(s.Rendezvous.MaxRestarts))},
		{"dlrover.nodeUnit", "node_unit", strconv.Itoa(int(s.DLRover.NodeUnit))},
	}
}

// unreached refuses fields that an author's dlrover-run does not get to know: torchrun reads variables, but its master
// and its examples go by options.
func (r *Validation) unreached(l *job.Launch) {
	fields := append(launchFields(&r.Spec),
		launchField{field: "rendezvous.lastCall", option: "rdzv_conf"},
		launchField{field: "rendezvous.joinTimeout", option: "rdzv_conf"},
		launchField{field: "rendezvous.conf", option: "rdzv_conf"},
	)
	if r.Spec.DLRover.NetworkCheck {
		fields = append(fields, launchField{field: "dlrover.networkCheck", option: "network_check"})
	}
	if r.Spec.DLRover.ExcludeStraggler {
		fields = append(fields, launchField{field: "dlrover.excludeStraggler", option: "exclude_straggler"})
	}
	for _, f := range fields {
		if r.IsSet("spec."+f.field) && l.Option(f.option) == nil {
			r.fail("spec."+f.field, "requires",
				"the command starts %s itself, so this field has no effect: add --%s there, or leave the launcher to "+
					"tegen", l.Program, f.option)
		}
	}
}

var nodeRange = lazy.Regexp(`^([0-9]+)(?::(.*))?$`)

// launchNodes reads --nnodes: MIN:MAX, or one number for both.
func (r *Validation) launchNodes(l *job.Launch) {
	s := &r.Spec
	o := l.Option("nnodes")
	if o == nil {
		if s.Framework == job.FrameworkDLRover && l.Option("auto_config") == nil && s.Workers.Max > 1 {
			r.fail("spec.command", "requires",
				"%s starts with one node where --nnodes is missing: add --nnodes=%d:$NODE_NUM", l.Program,
				s.Workers.Min)
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
	if g := s.Gang; g.Active() && int64(g.MinAvailable) < least {
		r.fail("spec.gang.minAvailable", "order",
			"%d is below the %d of --nnodes=%s: the pods placed could never rendezvous", g.MinAvailable, least, o.Value)
	}
	if w := s.Workers; m[2] == "" && w.Min == w.Max {
		if least != int64(w.Max) {
			r.fail(o.Path, "order", "%s is not spec.workers.replicas %d: make them agree, or leave it out", o, w.Max)
		}
		return
	}
	if least != int64(s.Workers.Min) {
		r.fail(o.Path, "order", "--nnodes=%s starts with %d, spec.workers.min is %d: make them agree", o.Value, least,
			s.Workers.Min)
	}
	most := m[2]
	if most == "" {
		most = m[1]
	}
	if n, err := strconv.Atoi(most); err == nil && n != int(s.Workers.Max) {
		r.fail(o.Path, "order", "--nnodes=%s ends with %d, spec.workers.max is %d: make them agree", o.Value, n,
			s.Workers.Max)
	}
}

var ownLaunchRules = []oldRule{
	{(*Validation).ownLaunch, "framework target launcher command args workers resources.gpu rendezvous env envFrom"},
	{(*Validation).launchedAlone, "framework launcher command args workers script"},
}

// ownLaunch refuses options of an author's torchrun that win over what tegen sets up for it, and leave workers without
// each other or accelerators without a process. Where a program is told of no rendezvous they are all that it goes by.
func (r *Validation) ownLaunch() {
	s := &r.Spec
	l := s.Launch()
	if l == nil || l.Program == "" || s.Unlaunched() {
		return
	}
	if o := l.Option("standalone"); o != nil && s.Workers.Max > 1 && !s.HostLaunched() { // which refuse the launcher
		remedy := ""
		if s.Framework == job.FrameworkTorchelastic {
			remedy = "; or set launcher: none, where that is meant"
		}
		r.fail(o.Path, "order", "--standalone has each of %d workers train alone: leave it out, and they train "+
			"together%s", s.Workers.Max, remedy)
	}
	if s.Framework != job.FrameworkTorchelastic || s.Workers.Master {
		return
	}
	if o := l.Option("nproc_per_node"); o != nil && !r.IsSet("spec.workers.processes") {
		n, err := strconv.Atoi(o.Value)
		if p := s.Workers.Processes; err == nil && s.Resources.GPU > int64(n) && p.StrVal == "" && n != int(p.IntVal) {
			r.fail(o.Path, "order", "%s is below spec.resources.gpu %d: leave it out, or write "+
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
func (r *Validation) ownRendezvous(o *job.LaunchOption) {
	s, z := &r.Spec, &r.Spec.Rendezvous
	const wins = "%s wins over what tegen sets for the rendezvous: leave it out"
	switch o.Name {
	case "rdzv_backend":
		if o.Value == "static" && s.Target == job.TargetTrainJob || o.Value == z.Backend {
			return
		}
		remedy := ""
		if slices.Contains([]string{job.BackendC10d, job.BackendEtcd, job.BackendEtcdV2}, o.Value) {
			remedy = ", or write spec.rendezvous.backend: " + o.Value + " in its place"
		}
		r.fail(o.Path, "order", wins+"%s", o, remedy)
	case "rdzv_endpoint":
		if o.Value == z.Endpoint {
			return
		}
		r.fail(o.Path, "order", wins+", or write spec.rendezvous: {store: external, endpoint: HOST:PORT} in its "+
			"place, for a store that exists", o)
	case "rdzv_id":
		if r.IsSet("spec.rendezvous.id") && o.Value != z.ID {
			r.fail(o.Path, "order", "%s is not spec.rendezvous.id %s: say it once", o, z.ID)
		}
	default:
		r.fail(o.Path, "order", "%s is of a static rendezvous, which this job does not have: leave it out; worker 0 "+
			"is found by spec.rendezvous", o)
	}
}

// ofVariable finds the variables in a value, as the kubelet and a shell read them.
var ofVariable = lazy.Regexp(`\$(?:\(([A-Za-z_]\w*)\)|\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*))`)

// follows says whether a value is of variables that a worker has: what they hold is the author's business, or tegen's
// own. Those in what a shell runs may be its own.
func (r *Validation) follows(o *job.LaunchOption) bool {
	found := ofVariable().FindAllStringSubmatch(o.Value, -1)
	for _, m := range found {
		if name := m[1]; name != "" && len(r.Spec.EnvFrom) == 0 && !r.Spec.HasVariable(name) {
			return false
		}
	}
	return len(found) > 0
}

// launchedAlone refuses a launcher of hosts in a job whose pods each start it: none of them knows of the others.
func (r *Validation) launchedAlone() {
	s := &r.Spec
	words := slices.Concat(s.Command, s.Args)
	if s.Framework != job.FrameworkTorchelastic || s.Launcher != job.LauncherEntrypoint || s.Workers.Max < 2 ||
		len(s.Command) == 0 || job.ShellText(words) >= 0 {
		return
	}
	at, m := job.LaunchIn(words)
	if m == nil || !job.StartsHosts(m[1]+m[2]) {
		return
	}
	r.fail(job.WordPath(s.Command, at), "requires", "each of %d workers would start %s, which knows nothing of the others: %s; or "+
		"set launcher: none, where that is meant", s.Workers.Max, m[1]+m[2], job.LeaveTo(m[1]+m[2]))
}

var programRules = []oldRule{
	{
		(*Validation).launchedTwice,
		"framework launcher bytescheduler.mode mpi.launch command args workers.replicas workers.max",
	},
	{(*Validation).runnable, "framework launcher bytescheduler.mode mpi.launch command args script servers.command"},
}

// launchedTwice refuses a launcher of the author's where tegen puts one before the command: each would start its own
// processes, and the inner one has no part in the others' rendezvous.
func (r *Validation) launchedTwice() {
	s := &r.Spec
	by := s.LaunchedBy()
	if by == "" || s.Torchrun() && job.Launches(s.Command) {
		return
	}
	words := slices.Concat(s.Command, s.Args)
	if len(s.Command) == 0 && by == job.LauncherTorchrun {
		return // the first argument is a file that Python reads
	}
	at, m := job.LaunchIn(words)
	if m == nil {
		return
	}
	name := strings.Join(strings.Fields(m[1]+m[2]), " ")
	if job.HostLauncher().MatchString(" "+name+" ") && s.Horovodrun() || s.BytePS() &&
		(job.HostLauncher().MatchString(" "+name+" ") || job.LauncherWord().MatchString(name)) {
		return // horovodProgram and bytePSProgram say so
	}
	remedy := "leave it and its options out"
	switch owner := job.OwnersOf[name]; {
	case owner != "" && s.Framework == job.FrameworkTorchelastic:
		remedy = job.LeaveTo(name)
		if s.Workers.Max < 2 {
			remedy += ", or set launcher: entrypoint"
		}
	case s.Torchrun() && !job.LauncherWord().MatchString(name): // torchrun starts what it would start
		remedy += ", or set launcher: entrypoint"
	case s.Torchrun():
		remedy = "set launcher: entrypoint, or " + remedy
	case s.Framework == job.FrameworkMPI:
		remedy += ", or set mpi.launch: command"
	case s.Framework == job.FrameworkHorovod && job.LauncherWord().MatchString(name) && job.OwnersOf[name] == "":
		remedy += ", or leave out framework: horovod, and " + name + " starts them"
	}
	r.fail(job.WordPath(s.Command, at), "requires", "%s starts processes itself, and tegen puts %s before it: %s", name, by, remedy)
}

// runnable refuses what cannot be started: a script that no interpreter is named for, a line in place of words, or a
// launcher that was removed.
func (r *Validation) runnable() {
	s := &r.Spec
	all := slices.Concat(s.Command, s.Args)
	for i := range max(0, len(all)-1) {
		if path.Base(all[i]) == names.Rendezvous && all[i+1] == "run" {
			r.fail(job.WordPath(s.Command, i), "requires", "\"%s run\" was removed: start torchrun, and set rendezvous: "+
				"{backend: c10d, store: etcd, proxy: true}", names.Rendezvous)
			return
		}
	}
	words, at := s.Command, "spec.command[0]"
	if len(words) == 0 && s.Script == nil &&
		slices.Contains([]string{"horovodrun", job.LaunchMpirun, job.BPSLaunch}, s.LaunchedBy()) {
		words, at = s.Args, "spec.args[0]" // these start programs; torchrun and dlrover-run read a script by themselves
	}
	r.startable(words, at)
	r.startable(s.Servers.Command, "spec.servers.command[0]")
}

func (r *Validation) startable(words []string, at string) {
	if len(words) == 0 || strings.Contains(words[0], "$(") { // what a variable holds is unknown here
		return
	}
	switch first := words[0]; {
	case first == "":
		r.fail(at, "requires", "is empty: name a program")
	case len(words) == 1 && strings.ContainsAny(first, " \t\n"):
		remedy := "write " + structural.FlowList(strings.Fields(first))
		if _, m := job.LaunchIn(strings.Fields(first)); m != nil && r.Spec.LaunchedBy() != "" {
			remedy = "write the program and its arguments alone, each as an item of the list: " + r.Spec.LaunchedBy() +
				" is put before them"
		} else if strings.ContainsAny(first, "|&;<>()$\"'`*\\\n{},#") {
			remedy = "give it to one, as [sh, -c, TEXT]"
		}
		r.fail(at, "requires", "is one word, of which no shell makes several: %s", remedy)
	case scriptName().MatchString(first):
		r.fail(at, "requires", "%s is a script and no program on the PATH: write %s %s", first, interpreter(first),
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

// unlaunched refuses what a program that is told of no rendezvous would never learn.
func (r *Validation) unlaunched() {
	w := &r.Spec.Workers
	if !r.Spec.Unlaunched() {
		return
	}
	const never = "the program is told of none with launcher none, so this field has no effect: leave it out, or set " +
		"launcher: entrypoint"
	if n := r.Root.Below("spec", "rendezvous"); r.IsSet("spec.rendezvous") && !n.Merged && !w.Master {
		r.fail("spec.rendezvous", "requires", never)
	}
	if r.IsSet("spec.workers.processes") && w.Processes.IntVal != 1 {
		r.fail("spec.workers.processes", "requires",
			"nothing starts more than the one program with launcher none: leave it out, or set another launcher")
	}
	if w.Min != w.Max {
		r.fail("spec.workers.min", "requires", "an elastic job (min %d, max %d) meets anew when workers come and go, "+
			"and with launcher none nobody tells the program: set another launcher", w.Min, w.Max)
	}
}
