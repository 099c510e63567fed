// Package rule says what must hold between the fields of a job.
package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

// Rule is one thing that must hold between fields: a function of the values that it reads.
type Rule = part.Func[*Problems]

// Problems is where a rule says what is wrong, and what it asks about what was written.
type Problems struct {
	*part.Tree
	root *structural.Node
	errs structural.Errors
}

// Validation is what an old rule works with: the job as generators would see it, and its tree for positions.
type Validation struct {
	target.Written
	p *Problems
}

// oldRule is one thing that must hold between fields, and the parts of a job that it depends on.
type oldRule struct {
	Check     func(*Validation)
	DependsOn string
}

func converted(olds ...[]oldRule) (all []Rule) {
	for _, o := range slices.Concat(olds...) {
		all = append(all, Rule{
			Reads: []part.Read{part.New(o.DependsOn, func(*job.Job) any { return nil })},
			Call: func(p *Problems, j *job.Job) {
				o.Check(&Validation{target.Written{Job: j, Root: p.root, Row: target.For(&j.Spec)}, p})
			},
		})
	}
	return all
}

// Rules are those of this file and of the files of one thing, and the lists that head these files. CUE can say
// most of them, but not in words that name both sides, and not at the price of a comparison.
var Rules = slices.Concat(topologyRules, horovodRules, mpiRules, imageSSHRules, byteSchedulerRules, mxnetRules,
	volcanoRules, converted([]oldRule{
		{(*Validation).target, "framework target"},
		{(*Validation).names, "metadata createNamespace"},
		{(*Validation).recreated, "metadata"},
		{(*Validation).hooks, "gitops target workload podTemplate roles"},
		{(*Validation).program, "framework launcher bytescheduler.mode mpi.launch command args script"},
		{(*Validation).script, "script framework launcher bytescheduler.mode mpi.launch command args identity"},
		{(*Validation).environment, "env framework launcher target network.collective checkpoint"},
		{(*Validation).barePods, "target workers"},
		{(*Validation).workers, "workers.replicas workers.min workers.max rendezvous.maxRestarts"},
		{
			(*Validation).master,
			"framework target launcher command args workers.master workers.min workers.max workers.processes rendezvous",
		},
		{(*Validation).unlaunched, "framework launcher workers rendezvous"},
		{(*Validation).masterEnvironment, "workers.master env podTemplate"},
		{(*Validation).processes, "framework bytescheduler.mode workers.processes resources.gpu resources.gpuResource"},
		{
			(*Validation).storeDisks,
			"workers.master rendezvous.store rendezvous.backend rendezvous.etcd rendezvous.companion roles",
		},
		{(*Validation).storeVolumes, "rendezvous.companion rendezvous.etcd"},
		{(*Validation).nodes, "placement roles groups"},
		{(*Validation).spot, "placement"},
		{(*Validation).managedBy, "managedBy target gang"},
		{
			(*Validation).roles,
			"roles framework target mxnet.mode bytescheduler.mode mpi.launch rendezvous.store storage ssh workers",
		},
		{(*Validation).failure, "failure framework target launcher"},
		{(*Validation).podTemplate, "podTemplate roles sidecars target"},
		{(*Validation).containerNames, "framework target podTemplate roles"},
		{(*Validation).podFields, "framework target podTemplate roles"},
	},
		companionRules,
		controllersRules,
		dlroverRules,
		elasticjobRules,
		envRules,
		fabricRules,
		gangRules,
		groupRules, failureRules,
		autoscaleRules,
		codeRules,
		jaxRules,
		launchRules, ownLaunchRules,
		networkRules,
		programRules, proxyRules,
		rendezvousRules,
		resourcesRules,
		sidecarRules,
		slicesRules,
		storageRules,
		featureRules(),
		releaseRules(),
	))

// Validate asks every rule that reads no field with a mistake in it.
func Validate(j *job.Job, root *structural.Node, broken part.Set) (errs structural.Errors) {
	for _, rule := range Rules {
		said, _ := Ask(rule, j, root, broken)
		errs = append(errs, said...)
	}
	return errs
}

// Ask is what one rule says, and whether it could be asked.
func Ask(r Rule, j *job.Job, root *structural.Node, broken part.Set) (structural.Errors, bool) {
	if r.Touches(broken) {
		return nil, false
	}
	p := &Problems{Tree: part.NewTree(root, broken), root: root}
	r.Call(p, j)
	if p.Missed() {
		return nil, false
	}
	return p.errs, true
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
		if p.IsSet(path) {
			p.fail(path, "requires", "%s", reason)
		}
	}
}

func (r *Validation) fail(path, rule, format string, args ...any) {
	r.p.fail(path, rule, format, args...)
}

func (r *Validation) failKey(mapping, key, rule, format string, args ...any) {
	r.p.failKey(mapping, key, rule, format, args...)
}

func (r *Validation) names() {
	switch ns := r.Metadata.Namespace; {
	case !r.Spec.CreateNamespace:
	case ns == "default":
		r.fail("spec.createNamespace", "requires", "namespace default exists in every cluster: set metadata.namespace")
	case job.IsSystemNamespace(ns):
		r.fail("spec.createNamespace", "requires", "namespace %s belongs to Kubernetes or to a controller, and its "+
			"Pod Security label would change, which can stop their pods: set another metadata.namespace, or leave "+
			"this out", ns)
	}
}

// program needs something that tegen's launcher is to start: it does not run the image's entrypoint.
func (r *Validation) program() {
	s := &r.Spec
	launcher, otherwise := s.LaunchedBy(), ""
	if launcher == job.LauncherTorchrun {
		otherwise = ", or set launcher: entrypoint"
	}
	switch {
	case launcher == "" || len(s.Command) > 0 || s.Script != nil:
	case len(s.Args) == 0:
		r.fail("spec", "requires",
			"nothing to run, and %s does not run the image's entrypoint: give a command, args or a script%s",
			launcher, otherwise)
	case strings.HasPrefix(s.Args[0], "-"):
		r.fail("spec.args[0]", "requires", "%s is an option, not a program: give a command or a script%s", s.Args[0],
			otherwise)
	}
}

func (r *Validation) script() {
	s := r.Spec.Script
	if s == nil {
		return
	}
	switch {
	case s.S3 == "" && r.IsSet("spec.script.fetch"):
		r.fail("spec.script.fetch", "requires", "only a script in S3 is fetched: leave it out, or set spec.script.s3")
	case s.S3 != "" && s.Fetch == job.FetchEntrypoint && r.Spec.Torchrun():
		r.fail("spec.script.fetch", "requires",
			"the image's entrypoint fetches the script, so spec.launcher must be entrypoint too")
	case s.S3 != "" && s.Fetch == job.FetchEntrypoint && r.Spec.LaunchedBy() != "":
		r.fail("spec.script.fetch", "requires",
			"%s starts the processes, never the image's entrypoint: use initContainer", r.Spec.LaunchedBy())
	}
	if s.S3 != "" && r.Spec.Identity == nil {
		r.fail("spec.script.s3", "requires",
			"reading from S3 needs spec.identity: one of irsa, podIdentity, nodeRole, serviceAccount")
	}
}

func (r *Validation) environment() {
	seen := map[string]bool{}
	for i, e := range r.Spec.Env {
		at := fmt.Sprintf("spec.env[%d].name", i)
		switch {
		case seen[e.Name]:
			r.fail(at, "duplicate", "%s is set twice", e.Name)
		case !r.Spec.Unlaunched() && (strings.HasPrefix(e.Name, "PET_") || e.Name == "TEGEN_RUN_UID" ||
			e.Name == "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"):
			r.fail(at, "reserved", "%s is set by tegen: see spec.rendezvous and spec.workers", e.Name)
		case r.Spec.Launcher == job.LauncherEntrypoint && r.Spec.Target != job.TargetTrainJob &&
			job.TutorialEnv[e.Name]:
			r.fail(at, "reserved", "%s is set by tegen for launcher: entrypoint", e.Name)
		case e.Name == "DIST_BACKEND" && r.Spec.Network.Collective != "":
			r.fail(at, "reserved", "DIST_BACKEND is set by spec.network.collective")
		case e.Name == "CHECKPOINT_DIR" && r.Spec.Checkpoint != nil:
			r.fail(at, "reserved", "CHECKPOINT_DIR is set by spec.checkpoint")
		case e.Name == "GLOO_SOCKET_IFNAME" && e.Value != nil && strings.ContainsAny(*e.Value, ",^="):
			r.fail(fmt.Sprintf("spec.env[%d].value", i), "format",
				"Gloo takes one interface's name; only NCCL takes lists and ^")
		}
		seen[e.Name] = true
	}
}

func (r *Validation) workers() {
	w := &r.Spec.Workers
	switch {
	case w.Replicas == 0:
		r.fail("spec.workers", "requires", "needs replicas, or max")
	case w.Replicas > w.Max && !r.IsSet("spec.workers.min"):
		r.fail("spec.workers.replicas", "order", "%d is above max %d", w.Replicas, w.Max)
	case w.Max < w.Min && r.IsSet("spec.workers.max"):
		r.fail("spec.workers.max", "order", "%d is below min %d", w.Max, w.Min)
	case w.Replicas < w.Min && r.IsSet("spec.workers.replicas"):
		r.fail("spec.workers.replicas", "order", "%d is below min %d", w.Replicas, w.Min)
	case w.Replicas > w.Max:
		r.fail("spec.workers.replicas", "order", "%d is above max %d", w.Replicas, w.Max)
	}
	if w.Replicas != 0 && w.Min < w.Max && r.Spec.Rendezvous.MaxRestarts == 0 {
		r.fail("spec.rendezvous.maxRestarts", "requires",
			"an elastic job (min %d, max %d) restarts its processes when membership changes: at least 1", w.Min, w.Max)
	}
}

// maxBarePods bounds what bare pods hold together: each is an object with a copy of the job's texts.
const maxBarePods = 64 << 20

// barePods refuses so many bare pods of a job so long that they do not fit in memory.
func (r *Validation) barePods() {
	if r.Spec.Target != job.TargetPods {
		return
	}
	if size := weightOf(r.Root); size*int(r.Spec.Workers.Replicas) > maxBarePods {
		r.fail("spec.workers", "size", "%d bare pods, each with the job's %d KiB, exceed the limit of %d MiB: use "+
			"target %s, whose pods share one template, or shorten the job", r.Spec.Workers.Replicas, size>>10,
			maxBarePods>>20, job.TargetJob)
	}
}

// weightOf is about how many bytes a tree takes in an object.
func weightOf(n *structural.Node) int {
	const each = 16 // beside its text
	size := each + len(n.Text)
	for _, e := range n.Fields {
		size += len(e.Key) + weightOf(e.Value)
	}
	for _, item := range n.Items {
		size += weightOf(item)
	}
	return size
}

// masterEnvironment refuses values that no process would see.
func (r *Validation) masterEnvironment() {
	if !r.Spec.Workers.Master {
		return
	}
	check := func(at, name string) {
		if slices.Contains(job.MasterVariables, name) {
			r.fail(at, "reserved", "%s is set by the operator, behind this one: leave it out", name)
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}

// master needs a program that meets by the operator's variables: torchrun takes its rendezvous from those of the
// elastic policy, which a job with a Master has not.
func (r *Validation) master() {
	w := &r.Spec.Workers
	switch {
	case !w.Master:
	case r.Spec.Launcher != job.LauncherEntrypoint && !r.Spec.Unlaunched():
		r.fail("spec.workers.master", "requires",
			"a launcher has a rendezvous of its own and needs no Master: leave it out, or set launcher: entrypoint")
	case w.Min != w.Max:
		r.fail("spec.workers.master", "requires", "an elastic job (min %d, max %d) has none: its workers come and go",
			w.Min, w.Max)
	}
	if n := r.Root.Below("spec", "rendezvous"); w.Master && r.IsSet("spec.rendezvous") && !n.Merged {
		r.fail("spec.rendezvous", "requires",
			"the Master is the rendezvous of the workers, so this field has no effect: leave it out")
	}
	// an author's own torchrun starts them, and an image's entrypoint may
	if w.Master && w.Processes.IntVal > 1 && r.Spec.Launch() == nil {
		r.fail("spec.workers.processes", "requires",
			"each pod of a job with a Master is one process, and its operator would have them wait for %d times as "+
				"many: leave it out", w.Processes.IntVal)
	}
}

func (r *Validation) processes() {
	processes, res := r.Spec.Workers.Processes, &r.Spec.Resources
	switch {
	case processes.StrVal == "gpu" && res.GPU == 0 && !r.Spec.HostLaunched(): // of which horovodSlots tells
		r.fail("spec.workers.processes", "requires",
			"gpu counts the accelerators of a worker, and spec.resources.gpu asks for none: use auto")
	// of others, one may have several cores
	case res.GPU > 0 && int64(processes.IntVal) > res.GPU && strings.HasSuffix(res.GPUResource, "/gpu"):
		r.fail("spec.workers.processes", "order",
			"%d is above spec.resources.gpu %d: each process needs an accelerator of its own", processes.IntVal,
			res.GPU)
	}
}

func (r *Validation) failure() {
	f := &r.Spec.Failure
	for i, code := range f.FatalExitCodes {
		if code != 1 && r.Spec.Torchrun() {
			r.fail(fmt.Sprintf("spec.failure.fatalExitCodes[%d]", i), "requires",
				"torchrun exits with 1 whatever its processes exit with, so %d never comes: use launcher "+
					"entrypoint, or 1", code)
		}
	}
	for field, set := range map[string]bool{
		"fatalExitCodes": len(f.FatalExitCodes) > 0, "ignoreDisruptions": f.IgnoreDisruptions,
		"restartsPerWorker": f.RestartsPerWorker != nil && !r.Spec.LeavesFailed(),
	} {
		if f.InPlace && set {
			r.fail("spec.failure."+field, "requires",
				"Kubernetes looks at pods that have failed for it, and with inPlace none does: leave one of them out")
		}
	}
	if r.IsSet("spec.failure.restarts") && f.RestartsPerWorker != nil {
		r.fail("spec.failure.restartsPerWorker", "one-of", "only one of restarts, restartsPerWorker may be given")
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

// Loaded is a job as far as it could be loaded. job is nil where nothing could; what was wrong with the parts named in
// invalid is in errs, and no rule depends on them any more.
type Loaded struct {
	Job     *job.Job
	Errs    structural.Errors
	Invalid part.Set
}
