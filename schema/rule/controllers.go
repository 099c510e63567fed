package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
)

// managedBy checks that there is somebody to start the job.
func (r *Validation) managedBy() {
	s := &r.Spec
	switch by := s.ManagedBy; {
	case by == "":
	case by == job.MultiKueue && !s.Gang.Is(job.GangKueue):
		r.fail("spec.managedBy", "requires", "Kueue starts only jobs of a queue: set gang.scheduler kueue with "+
			"gang.queue, or leave it out")
	case by != job.MultiKueue && s.Target != job.TargetJob && s.Target != job.TargetJobSet:
		// the patterns of these CustomResourceDefinitions, beside the name of their own controller
		r.fail("spec.managedBy", "target", "target %s takes %s alone; targets %s, %s take any", s.Target,
			job.MultiKueue, job.TargetJob, job.TargetJobSet)
	}
}

var controllersRules = []oldRule{
	{(*Validation).podNames, "framework target hashedNames metadata groups coordinator workers.replicas workers.max"},
	{(*Validation).trainJobProcesses, "target workers.processes resources.gpu resources.gpuResource"},
}

// podNames holds the names that JobSet's controller derives against the length of a hostname.
func (r *Validation) podNames() {
	length := r.DerivedName(r.Spec.HashedNames)
	switch {
	case length <= job.LongestHostname:
	case r.Spec.HashedNames && r.DerivedName(false) <= job.LongestHostname:
		r.fail("spec.hashedNames", "length",
			"pods of target %s would have names of %d characters, above %d: make metadata.name %d shorter, or leave "+
				"the hash out", r.Spec.Target, length, job.LongestHostname, length-job.LongestHostname)
	case r.Spec.Coordinator != nil && r.PodNameLength(false) <= job.LongestHostname:
		r.fail("spec.coordinator", "length", "its host name, which JobSet writes into a label, would have %d "+
			"characters, above %d: make metadata.name or the group's name shorter", length, job.LongestHostname)
	default:
		r.fail("spec.groups", "length", "names of target %s that are made of metadata.name and a group's name would "+
			"have %d characters, above %d: make one of the two %d shorter", r.Spec.Target, length, job.LongestHostname,
			length-job.LongestHostname)
	}
}

// trainJobProcesses refuses what Trainer would count otherwise than torchrun: it takes a resource for an accelerator if
// its name has "gpu" in it, and CPUs only where there is none (kubeflow/trainer v2.3.0, pkg/runtime/runtime.go).
func (r *Validation) trainJobProcesses() {
	p, res := r.Spec.Workers.Processes, &r.Spec.Resources
	if r.Spec.Target != job.TargetTrainJob || p.IntVal > 0 || res.GPU == 0 {
		return
	}
	const at = "spec.workers.processes"
	switch seen := strings.Contains(strings.ToLower(res.GPUResource), "gpu"); {
	case p.StrVal == "cpu" && seen:
		r.fail(at, "requires", "Trainer starts a process for each accelerator where a pod has some: give a number")
	case p.StrVal != "cpu" && !seen:
		r.fail(at, "requires", "Trainer does not take %s for an accelerator and would count CPUs: give a number",
			res.GPUResource)
	}
}

var dlroverRules = []oldRule{
	{(*Validation).dlrover, "framework dlrover workers.replicas workers.min workers.max"},
	{(*Validation).dlroverMaster, "framework metadata resources.cpu resources.memory env podTemplate"},
	{(*Validation).dlroverPriority, "framework placement.priorityClass podTemplate"},
	{(*Validation).dlroverProgram, "framework command args"},
}

// dlroverName is the longest name for which elasticjob-<name>-dlrover-master, a Service, has 63 characters.
const dlroverName = 37

// dlrover holds the settings of DLRover together.
func (r *Validation) dlrover() {
	d, w := &r.Spec.DLRover, &r.Spec.Workers
	if r.Spec.Framework != job.FrameworkDLRover {
		return
	}
	if d.Brain != "" && d.OptimizeMode != "cluster" {
		r.fail("spec.dlrover.brain", "requires",
			"only optimizeMode cluster asks a brain: leave it out, or set optimizeMode: cluster")
	}
	if d.ExcludeStraggler && !d.NetworkCheck {
		r.fail("spec.dlrover.excludeStraggler", "requires",
			"only the network check finds stragglers: set networkCheck: true")
	}
	if w.Max > w.Replicas {
		r.fail("spec.workers.max", "order",
			"%d is above replicas %d, and DLRover starts no more workers than replicas: leave max out", w.Max,
			w.Replicas)
	}
	if u := d.NodeUnit; u > 0 && (w.Min%u != 0 || w.Replicas%u != 0) {
		r.fail("spec.dlrover.nodeUnit", "order", "min %d and replicas %d must be multiples of %d", w.Min, w.Replicas, u)
	}
}

// dlroverMaster refuses what the master would not pass on to the workers, or would change.
func (r *Validation) dlroverMaster() {
	if r.Spec.Framework != job.FrameworkDLRover {
		return
	}
	if len(r.Metadata.Name) > dlroverName {
		r.fail("metadata.name", "range",
			"has %d characters, and the Service elasticjob-<name>-dlrover-master has room for %d", len(r.Metadata.Name),
			dlroverName)
	}
	for at, annotations := range map[string]map[string]string{
		"metadata.annotations": r.Metadata.Annotations, "spec.workload.annotations": r.Spec.Workload.Annotations,
	} {
		if _, ok := annotations["pending_timeout"]; ok {
			r.failKey(at, "pending_timeout", "reserved", "is set by spec.dlrover.pendingTimeout")
		}
	}
	res := &r.Spec.Resources
	if res.CPU.MilliValue()%100 != 0 {
		r.fail("spec.resources.cpu", "format", "DLRover's master rounds %s to tenths of a CPU: use a multiple of 100m",
			res.CPU.String())
	}
	if res.Memory.Value()%(1<<20) != 0 {
		r.fail("spec.resources.memory", "format", "DLRover's master rounds %s down to whole Mi: use a multiple of 1Mi",
			res.Memory.String())
	}
	for i, e := range r.Spec.Env {
		if slices.Contains(masterEnv, e.Name) {
			r.fail(fmt.Sprintf("spec.env[%d].name", i), "reserved", "%s is set by DLRover's master", e.Name)
		}
	}
	for at, name := range r.patchedEnv() {
		if slices.Contains(masterEnv, name) {
			r.fail(at+".name", "reserved", "%s is set by DLRover's master", name)
		}
	}
	patch := r.patch()
	if patch.Spec.TerminationGracePeriodSeconds != nil {
		r.fail("spec.podTemplate.spec.terminationGracePeriodSeconds", "requires",
			"DLRover's master gives every pod Kubernetes' own 30s: leave it out")
	}
	for i, c := range patch.Spec.Containers {
		if c.Name == "worker" && c.Lifecycle != nil {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "requires",
				"DLRover's master drops it: leave it out")
		}
	}
}

// dlroverPriority refuses the names of classes of which the master dies (dlrover/python/common/node.py).
func (r *Validation) dlroverPriority() {
	if r.Spec.Framework != job.FrameworkDLRover {
		return
	}
	for at, class := range map[string]string{
		"spec.placement.priorityClass":            r.Spec.Placement.PriorityClass,
		"spec.podTemplate.spec.priorityClassName": r.patch().Spec.PriorityClassName,
	} {
		if class != "" && class != "high" && class != "low" {
			r.fail(at, "requires", "DLRover's master ends at a class called %s: use high or low, the two that it takes",
				class)
		}
	}
}

// masterEnv is what the master puts behind a worker's own variables (dlrover/python/master/scaler/pod_scaler.py).
var masterEnv = []string{
	"DLROVER_MASTER_ADDR", "DLROVER_MASTER_SERVICE_TYPE", "ELASTIC_JOB_NAME", "JOB_UID", "NODE_TYPE", "NODE_ID",
	"NODE_NUM", "NODE_RANK", "POD_IP", "NODE_IP", "POD_NAME", "RANK", "WORLD_SIZE", "WORKER_TYPE", "WORKER_ID",
	"WORKER_NUM", "WORKER_RANK", "MONITOR_ENABLED", "GRPC_ENABLE_FORK_SUPPORT",
}

// dlroverProgram refuses another's launcher.
func (r *Validation) dlroverProgram() {
	if l := r.Spec.Launch(); r.Spec.Framework == job.FrameworkDLRover && l != nil && !l.Dlrover() {
		r.fail("spec.command", "requires",
			"%s does not talk to DLRover's master: leave it out, tegen starts dlrover-run", l.Program)
	}
}

// DlroverNames refuses two DLRover jobs of one name, in whichever namespaces: its controller knows jobs by name alone
// (go/elasticjob/pkg/controllers).
func DlroverNames(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	first := map[string]string{}
	for i, l := range jobs {
		if l.Job == nil || l.Job.Spec.Framework != job.FrameworkDLRover || l.Invalid.Touch("metadata") {
			continue
		}
		m := l.Job.Metadata
		if other, ok := first[m.Name]; ok && other != m.Namespace {
			errs = append(errs,
				roots[i].Errorf("metadata.name", "duplicate",
					"%q is the name of a job in namespace %s too, and DLRover's controller takes jobs of one name for "+
						"one job", m.Name, other))
			continue
		}
		first[m.Name] = m.Namespace
	}
	return errs
}

var elasticjobRules = []oldRule{
	{(*Validation).elasticJob, "framework target launcher command args rendezvous.backend rendezvous.id podTemplate"},
	{(*Validation).elasticJobFailure, "framework target failure"},
}

// elasticJob holds a job to what TorchElastic's controller does on its own: it hands --rdzv_backend=etcd,
// --rdzv_endpoint, --rdzv_id and --nnodes to every container before its args, and nothing else.
func (r *Validation) elasticJob() {
	s := &r.Spec
	if s.Framework != job.FrameworkTorchelastic || s.Target != job.TargetElasticJob {
		return
	}
	if s.Rendezvous.Backend != job.BackendEtcd {
		r.fail("spec.rendezvous.backend", "requires",
			"the controller of target elasticjob passes --rdzv_backend=etcd to every worker: set backend: etcd, and "+
				"store: etcd or external")
	}
	if s.Rendezvous.ID != "" {
		r.fail("spec.rendezvous.id", "requires",
			"the controller of target elasticjob names the run like the job: leave it out")
	}
	l := s.Launch()
	if last := len(s.Command) - 1; l != nil && last >= 0 && l.Program != "" &&
		!job.LauncherWord().MatchString(s.Command[last]) {
		r.fail(fmt.Sprintf("spec.command[%d]", last), "requires",
			"the controller of target elasticjob puts its options before args: let the command end with the "+
				"launcher, and move the rest to args")
	}
	if l != nil {
		for _, o := range l.Options {
			if o.Name == "nnodes" || strings.HasPrefix(o.Name, "rdzv_") && o.Name != "rdzv_conf" {
				r.fail(o.Path, "requires",
					"--%s is passed by the controller of target elasticjob: leave it out, spec.workers and "+
						"spec.rendezvous say it", o.Name)
			}
		}
	}
	for i, c := range r.patch().Spec.Containers {
		if c.Name != "worker" {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d]", i), "requires",
				"the controller of target elasticjob passes the launcher's options to every container, which %q does "+
					"not read: target job or pytorchjob takes more containers", c.Name)
		}
	}
}

// elasticJobFailure refuses to leave killed workers as they are: TorchElastic's controller makes them again wherever it
// makes no others again (ExitCode, kubeflow/common v0.0.0-20200327002023-0b3a4c3fca85, pkg/util/train).
func (r *Validation) elasticJobFailure() {
	const at = "spec.failure.ignoreDisruptions"
	if s := &r.Spec; s.Target == job.TargetElasticJob && s.LeavesFailed() && r.IsSet(at) &&
		!s.Failure.IgnoreDisruptions {
		r.fail(at, "requires", "the controller of target elasticjob makes workers again that were killed where it "+
			"leaves those that failed: leave it out")
	}
}
