// Package rule says what must hold between the fields of a job.
package rule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

// Rule is one thing that must hold between fields: a function of the values that it reads.
type Rule = part.Func[*Problems]

// Problems is where a rule says what is wrong, and what it asks about what was written.
type Problems struct {
	*part.Tree
	root *structural.Node
	errs structural.Errors
}

// Rules are those of this file and of the files of one thing, and the lists that head these files. CUE can say
// most of them, but not in words that name both sides, and not at the price of a comparison.
var Rules = slices.Concat(
	baseRules,
	byteSchedulerRules,
	companionRules,
	containerRules,
	controllersRules,
	failureRules,
	featureRules(),
	gangRules,
	groupRules,
	horovodRules,
	imageSSHRules,
	launchRules,
	mpiRules,
	mxnetRules,
	networkRules,
	proxyRules,
	releaseRules(),
	rendezvousRules,
	resourcesRules,
	storageRules,
	topologyRules,
	variableRules,
	volcanoRules,
)

// variableRules refuse variables that somebody else sets.
var variableRules = slices.Concat(each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of2(dlroverEnvironment, dlrover, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of2(jaxEnvironment, part.Framework, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of2(masterEnvironment, part.Master, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of5(launcherVariables, part.Framework, part.HostLaunched, part.Horovodrun, part.ImageSSH, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of4(mpirunVariables, part.Mpirun, part.ImageSSH, operatorVariables, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of4(nodeEnv, part.ParameterServers, part.Target, part.Interface, names)
}), each(variables, func(names *part.Value[map[string]string]) Rule {
	return part.Of3(slicesEnvironment, workerSlices, ranksBySlice, names)
}), each(patchedEnv, func(names *part.Value[map[string]string]) Rule {
	return part.Of2(barePatchedEnv, part.Target, names)
}))

var baseRules = []Rule{
	part.Of2(ownNamespace, part.Metadata, part.CreateNamespace),
	part.Of4(program, part.LaunchedBy, part.Script, part.Command, part.Args),
	part.Of4(fetchScript, part.Script, part.Torchrun, part.LaunchedBy, part.Identity),
	part.Of2(environment, part.Env, givenVariables),
	part.Of2(barePods, part.Target, part.Replicas),
	part.Of1(workers, part.Counts),
	part.Of2(elasticRestarts, part.Counts, part.MaxRestarts),
	part.Of5(master, part.Master, part.Unlaunched, part.Launcher, part.MinWorkers, part.MaxWorkers),
	part.Of3(masterProcesses, part.Master, part.Processes, part.Launch),
	part.Of1(masterRendezvous, part.Master),
	part.Of4(processes, part.Processes, part.GPU, part.GPUResource, part.HostLaunched),
	part.Of2(torchrunCodes, part.FatalExitCodes, part.Torchrun),
	part.Of2(countedInPlace, part.Failure, part.LeavesFailed),
	part.Of1(restartsTwice, part.Failure),
}

// Validate asks every rule that reads no field with a mistake in it, and leaves out what a rule says that has asked the
// tree for one.
func Validate(j *job.Job, root *structural.Node, broken part.Set) structural.Errors {
	p := &Problems{Tree: part.NewTree(root, broken), root: root}
	for _, rule := range Rules {
		if rule.Touches(broken) {
			continue
		}
		before := len(p.errs)
		if rule.Call(p, j); p.Missed() {
			p.errs = p.errs[:before]
		}
	}
	return p.errs
}

func (p *Problems) fail(path, rule, format string, args ...any) {
	p.errs = append(p.errs, p.root.Errorf(path, rule, format, args...))
}

// failKey reports a mistake in a key of a mapping that takes any.
func (p *Problems) failKey(mapping, key, rule, format string, args ...any) {
	p.errs = append(p.errs, p.root.KeyErrorf(mapping, key, rule, format, args...))
}

// failIfSet refuses fields that somebody wrote.
func (p *Problems) failIfSet(reason string, paths ...string) {
	for _, path := range paths {
		if p.IsValid(path) {
			p.fail(path, "requires", "%s", reason)
		}
	}
}

// ownNamespace refuses to render a namespace that exists, or belongs to others.
func ownNamespace(p *Problems, m *job.Metadata, create bool) {
	switch {
	case !create:
	case m.Namespace == "default":
		p.fail("spec.createNamespace", "requires", "namespace default exists in every cluster: set metadata.namespace")
	case job.IsSystemNamespace(m.Namespace):
		p.fail("spec.createNamespace", "requires", "namespace %s belongs to Kubernetes or to a controller, and its "+
			"Pod Security label would change, which can stop their pods: set another metadata.namespace, or leave "+
			"this out", m.Namespace)
	}
}

// program needs something that tegen's launcher is to start: it does not run the image's entrypoint.
func program(p *Problems, launcher string, script *job.Script, command, args []string) {
	if launcher == "" || len(command) > 0 || script != nil {
		return
	}
	otherwise := ""
	if launcher == job.LauncherTorchrun {
		otherwise = ", or set launcher: entrypoint"
	}
	switch {
	case len(args) == 0:
		p.fail("spec", "requires",
			"nothing to run, and %s does not run the image's entrypoint: give a command, args or a script%s",
			launcher, otherwise)
	case strings.HasPrefix(args[0], "-"):
		p.fail("spec.args[0]", "requires", "%s is an option, not a program: give a command or a script%s", args[0],
			otherwise)
	}
}

func fetchScript(p *Problems, s *job.Script, torchrun bool, launcher string, id *job.Identity) {
	if s == nil {
		return
	}
	switch entrypoint := s.S3 != "" && s.Fetch == job.FetchEntrypoint; {
	case s.S3 == "" && p.IsSet("spec.script.fetch"):
		p.fail("spec.script.fetch", "requires", "only a script in S3 is fetched: leave it out, or set spec.script.s3")
	case entrypoint && torchrun:
		p.fail("spec.script.fetch", "requires",
			"the image's entrypoint fetches the script, so spec.launcher must be entrypoint too")
	case entrypoint && launcher != "":
		p.fail("spec.script.fetch", "requires",
			"%s starts the processes, never the image's entrypoint: use initContainer", launcher)
	}
	if s.S3 != "" && id == nil {
		p.fail("spec.script.s3", "requires",
			"reading from S3 needs spec.identity: one of irsa, podIdentity, nodeRole, serviceAccount")
	}
}

// given says who sets variables of workers beside their author.
type given struct{ launched, tutorial, collective, checkpoint bool }

var givenVariables = part.OfSpec("framework launcher target network.collective checkpoint", func(s *job.Spec) given {
	return given{
		launched:   !s.Unlaunched(),
		tutorial:   s.Launcher == job.LauncherEntrypoint && s.Target != job.TargetTrainJob,
		collective: s.Network.Collective != "",
		checkpoint: s.Checkpoint != nil,
	}
})

// environment refuses variables that somebody else sets.
func environment(p *Problems, env []job.Env, by given) {
	seen := map[string]bool{}
	for i, e := range env {
		at := fmt.Sprintf("spec.env[%d].name", i)
		switch {
		case seen[e.Name]:
			p.fail(at, "duplicate", "%s is set twice", e.Name)
		case by.launched && (strings.HasPrefix(e.Name, "PET_") || e.Name == "TEGEN_RUN_UID" ||
			e.Name == "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"):
			p.fail(at, "reserved", "%s is set by tegen: see spec.rendezvous and spec.workers", e.Name)
		case by.tutorial && job.TutorialEnv[e.Name]:
			p.fail(at, "reserved", "%s is set by tegen for launcher: entrypoint", e.Name)
		case e.Name == "DIST_BACKEND" && by.collective:
			p.fail(at, "reserved", "DIST_BACKEND is set by spec.network.collective")
		case e.Name == "CHECKPOINT_DIR" && by.checkpoint:
			p.fail(at, "reserved", "CHECKPOINT_DIR is set by spec.checkpoint")
		case e.Name == "GLOO_SOCKET_IFNAME" && e.Value != nil && strings.ContainsAny(*e.Value, ",^="):
			p.fail(fmt.Sprintf("spec.env[%d].value", i), "format",
				"Gloo takes one interface's name; only NCCL takes lists and ^")
		}
		seen[e.Name] = true
	}
}

func workers(p *Problems, w part.Count) {
	switch {
	case w.Replicas == 0:
		p.fail("spec.workers", "requires", "needs replicas, or max")
	case w.Replicas > w.Max && !p.IsSet("spec.workers.min"):
		p.fail("spec.workers.replicas", "order", "%d is above max %d", w.Replicas, w.Max)
	case w.Max < w.Min && p.IsSet("spec.workers.max"):
		p.fail("spec.workers.max", "order", "%d is below min %d", w.Max, w.Min)
	case w.Replicas < w.Min && p.IsSet("spec.workers.replicas"):
		p.fail("spec.workers.replicas", "order", "%d is below min %d", w.Replicas, w.Min)
	case w.Replicas > w.Max:
		p.fail("spec.workers.replicas", "order", "%d is above max %d", w.Replicas, w.Max)
	}
}

func elasticRestarts(p *Problems, w part.Count, maxRestarts int32) {
	if w.Replicas != 0 && w.Min < w.Max && maxRestarts == 0 {
		p.fail("spec.rendezvous.maxRestarts", "requires",
			"an elastic job (min %d, max %d) restarts its processes when membership changes: at least 1", w.Min, w.Max)
	}
}

// maxBarePods bounds what bare pods hold together: each is an object with a copy of the job's texts.
const maxBarePods = 64 << 20

// barePods refuses so many bare pods of a job so long that they do not fit in memory.
func barePods(p *Problems, target string, workers int32) {
	if target != job.TargetPods {
		return
	}
	if size := p.Size(); size*int(workers) > maxBarePods {
		p.fail("spec.workers", "size", "%d bare pods, each with the job's %d KiB, exceed the limit of %d MiB: use "+
			"target %s, whose pods share one template, or shorten the job", workers, size>>10, maxBarePods>>20,
			job.TargetJob)
	}
}

// masterEnvironment refuses values that no process would see.
func masterEnvironment(p *Problems, master bool, variables map[string]string) {
	for at, name := range variables {
		if master && slices.Contains(job.MasterVariables, name) {
			p.fail(at, "reserved", "%s is set by the operator, behind this one: leave it out", name)
		}
	}
}

// master needs a program that meets by the operator's variables: torchrun takes its rendezvous from those of the
// elastic policy, which a job with a Master has not.
func master(p *Problems, master, unlaunched bool, launcher string, least, most int32) {
	switch {
	case !master:
	case launcher != job.LauncherEntrypoint && !unlaunched:
		p.fail("spec.workers.master", "requires",
			"a launcher has a rendezvous of its own and needs no Master: leave it out, or set launcher: entrypoint")
	case least != most:
		p.fail("spec.workers.master", "requires", "an elastic job (min %d, max %d) has none: its workers come and go",
			least, most)
	}
}

func masterRendezvous(p *Problems, master bool) {
	if master && p.IsSet("spec.rendezvous") && !p.Merged("spec.rendezvous") {
		p.fail("spec.rendezvous", "requires",
			"the Master is the rendezvous of the workers, so this field has no effect: leave it out")
	}
}

// masterProcesses lets nobody but an author's own torchrun, or perhaps an image's entrypoint, start several in a pod.
func masterProcesses(p *Problems, master bool, processes intstr.IntOrString, own *job.Launch) {
	if master && processes.IntVal > 1 && own == nil {
		p.fail("spec.workers.processes", "requires",
			"each pod of a job with a Master is one process, and its operator would have them wait for %d times as "+
				"many: leave it out", processes.IntVal)
	}
}

func processes(p *Problems, processes intstr.IntOrString, gpus int64, resource string, hostLaunched bool) {
	switch {
	case processes.StrVal == "gpu" && gpus == 0 && !hostLaunched: // of which horovodSlots tells
		p.fail("spec.workers.processes", "requires",
			"gpu counts the accelerators of a worker, and spec.resources.gpu asks for none: use auto")
	// of others, one may have several cores
	case gpus > 0 && int64(processes.IntVal) > gpus && strings.HasSuffix(resource, "/gpu"):
		p.fail("spec.workers.processes", "order",
			"%d is above spec.resources.gpu %d: each process needs an accelerator of its own", processes.IntVal, gpus)
	}
}

func torchrunCodes(p *Problems, codes []int32, torchrun bool) {
	for i, code := range codes {
		if code != 1 && torchrun {
			p.fail(fmt.Sprintf("spec.failure.fatalExitCodes[%d]", i), "requires",
				"torchrun exits with 1 whatever its processes exit with, so %d never comes: use launcher "+
					"entrypoint, or 1", code)
		}
	}
}

// countedInPlace refuses what needs failed pods, where none fails.
func countedInPlace(p *Problems, f *job.Failure, leavesFailed bool) {
	for field, set := range map[string]bool{
		"fatalExitCodes": len(f.FatalExitCodes) > 0, "ignoreDisruptions": f.IgnoreDisruptions,
		"restartsPerWorker": f.RestartsPerWorker != nil && !leavesFailed,
	} {
		if f.InPlace && set {
			p.fail("spec.failure."+field, "requires",
				"Kubernetes looks at pods that have failed for it, and with inPlace none does: leave one of them out")
		}
	}
}

func restartsTwice(p *Problems, f *job.Failure) {
	if p.IsSet("spec.failure.restarts") && f.RestartsPerWorker != nil {
		p.fail("spec.failure.restartsPerWorker", "one-of", "only one of restarts, restartsPerWorker may be given")
	}
}

// Texts looks at every string of a job, the escape hatch and annotations included, but not at values that were refused
// already.
func Texts(n *structural.Node, refused map[*structural.Node]bool) (errs structural.Errors) {
	var walk func(*structural.Node, *structural.Place)
	walk = func(n *structural.Node, p *structural.Place) {
		fail := func(rule, format string, args ...any) {
			errs = append(errs, n.At.Errorf(p.String(), rule, format, args...))
		}
		if n.Kind == yamldoc.String && n.At.Line > 0 && !refused[n] {
			if strings.IndexByte(n.Text, '<') >= 0 { // or there is none, and the place need not be spelled out
				if m := job.Placeholders(n.Text, job.IsProgram(p.String())); len(m) > 0 {
					fail("placeholder", "%s is a placeholder: put the value there", n.Text[m[0][0]:m[0][1]])
				}
			}
			if strings.ContainsRune(n.Text, 0) {
				fail("format", "holds a NUL character, which no process can be given")
			}
		}
		for _, e := range n.Fields {
			walk(e.Value, p.Key(e.Key))
		}
		for i, item := range n.Items {
			walk(item, p.At(i))
		}
	}
	walk(n, nil)
	return errs
}

// Loaded is a job as far as it could be loaded. Job is nil where nothing could; what was wrong with the fields in
// Invalid is in Errs, and no rule reads them.
type Loaded struct {
	Job     *job.Job
	Errs    structural.Errors
	Invalid part.Set
}

// Knows says whether values of the job can be read, for rules between jobs.
func (l Loaded) Knows(values ...part.Read) bool {
	return l.Job != nil && !part.Func[any]{Reads: values}.Touches(l.Invalid)
}
