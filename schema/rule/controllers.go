package rule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var controllersRules = []Rule{
	part.Of3(managedBy, part.ManagedBy, part.Gang, part.Target),
	part.Of4(podNames, derivedNames, part.HashedNames, part.Target, part.Coordinator),
	part.Of4(trainJobProcesses, part.Target, part.Processes, part.GPU, part.GPUResource),
	part.Of2(dlroverSettings, dlrover, part.DLRover),
	part.Of3(dlroverWorkers, dlrover, part.DLRover, part.Counts),
	part.Of3(dlroverMetadata, dlrover, part.Metadata, part.WorkloadAnnotations),
	part.Of3(dlroverAmounts, dlrover, workerCPU, workerMemory),
	part.Of2(dlroverPods, dlrover, workerPatch),
	part.Of3(dlroverPriority, dlrover, part.PriorityClass, workerPatch),
	part.Of1(dlroverProgram, dlroverLaunch),
	part.Of3(elasticJobRendezvous, elasticJob, part.Backend, runID),
	part.Of3(elasticJobProgram, elasticJob, part.Command, part.Launch),
	part.Of2(elasticJobContainers, elasticJob, workerPatch),
	part.Of3(elasticJobFailure, part.Target, part.LeavesFailed, part.Failure),
}

var (
	workerCPU     = part.OfSpec("resources.cpu", func(s *job.Spec) job.Amount { return s.Resources.CPU })
	workerMemory  = part.OfSpec("resources.memory", func(s *job.Spec) job.Amount { return s.Resources.Memory })
	runID         = part.OfSpec("rendezvous.id", func(s *job.Spec) string { return s.Rendezvous.ID })
	dlrover       = part.OfSpec("framework", func(s *job.Spec) bool { return s.Framework == job.FrameworkDLRover })
	dlroverLaunch = part.OfSpec("framework command args", func(s *job.Spec) *job.Launch {
		if s.Framework != job.FrameworkDLRover {
			return nil
		}
		return s.Launch()
	})
	// elasticJob says whether TorchElastic's controller starts the workers.
	elasticJob = part.OfSpec("framework target", func(s *job.Spec) bool {
		return s.Framework == job.FrameworkTorchelastic && s.Target == job.TargetElasticJob
	})
	derivedNames = part.New("metadata target groups coordinator workers.replicas workers.max workers.slices",
		func(j *job.Job) nameLengths {
			return nameLengths{j.DerivedName(true), j.DerivedName(false), j.PodNameLength(false)}
		})
)

// managedBy checks that there is somebody to start the job.
func managedBy(p *Problems, by string, g *job.Gang, target string) {
	switch {
	case by == "":
	case by == job.MultiKueue && !g.Is(job.GangKueue):
		p.fail("spec.managedBy", "requires", "Kueue starts only jobs of a queue: set gang.scheduler kueue with "+
			"gang.queue, or leave it out")
	case by != job.MultiKueue && target != job.TargetJob && target != job.TargetJobSet:
		// the patterns of these CustomResourceDefinitions, beside the name of their own controller
		p.fail("spec.managedBy", "target", "target %s takes %s alone; targets %s, %s take any", target,
			job.MultiKueue, job.TargetJob, job.TargetJobSet)
	}
}

// nameLengths are those of the longest derived name with a hash and without, and of the longest pod's name without.
type nameLengths struct{ hashed, plain, pod int }

// podNames holds the names that JobSet's controller derives against the length of a hostname.
func podNames(p *Problems, n nameLengths, hashed bool, target string, c *job.Coordinator) {
	length := n.plain
	if hashed {
		length = n.hashed
	}
	switch {
	case length <= job.LongestHostname:
	case hashed && n.plain <= job.LongestHostname:
		p.fail("spec.hashedNames", "length",
			"pods of target %s would have names of %d characters, above %d: make metadata.name %d shorter, or leave "+
				"the hash out", target, length, job.LongestHostname, length-job.LongestHostname)
	case c != nil && n.pod <= job.LongestHostname:
		p.fail("spec.coordinator", "length", "its host name, which JobSet writes into a label, would have %d "+
			"characters, above %d: make metadata.name or the group's name shorter", length, job.LongestHostname)
	default:
		p.fail("spec.groups", "length", "names of target %s that are made of metadata.name and a group's name would "+
			"have %d characters, above %d: make one of the two %d shorter", target, length, job.LongestHostname,
			length-job.LongestHostname)
	}
}

// trainJobProcesses refuses what Trainer would count otherwise than torchrun: it takes a resource for an accelerator if
// its name has "gpu" in it, and CPUs only where there is none (kubeflow/trainer v2.3.0, pkg/runtime/runtime.go).
func trainJobProcesses(p *Problems, target string, processes intstr.IntOrString, gpu int64, gpuResource string) {
	if target != job.TargetTrainJob || processes.IntVal > 0 || gpu == 0 {
		return
	}
	const at = "spec.workers.processes"
	switch seen := strings.Contains(strings.ToLower(gpuResource), "gpu"); {
	case processes.StrVal == "cpu" && seen:
		p.fail(at, "requires", "Trainer starts a process for each accelerator where a pod has some: give a number")
	case processes.StrVal != "cpu" && !seen:
		p.fail(at, "requires", "Trainer does not take %s for an accelerator and would count CPUs: give a number",
			gpuResource)
	}
}

// longestDLRoverName is for elasticjob-<name>-dlrover-master, a Service, to have 63 characters.
const longestDLRoverName = 37

// dlroverSettings holds the settings of DLRover together.
func dlroverSettings(p *Problems, dlrover bool, d *job.DLRover) {
	if dlrover && d.Brain != "" && d.OptimizeMode != "cluster" {
		p.fail("spec.dlrover.brain", "requires",
			"only optimizeMode cluster asks a brain: leave it out, or set optimizeMode: cluster")
	}
	if dlrover && d.ExcludeStraggler && !d.NetworkCheck {
		p.fail("spec.dlrover.excludeStraggler", "requires",
			"only the network check finds stragglers: set networkCheck: true")
	}
}

// dlroverWorkers refuses numbers of workers that DLRover never starts.
func dlroverWorkers(p *Problems, dlrover bool, d *job.DLRover, w part.Count) {
	if dlrover && w.Max > w.Replicas {
		p.fail("spec.workers.max", "order",
			"%d is above replicas %d, and DLRover starts no more workers than replicas: leave max out", w.Max,
			w.Replicas)
	}
	if u := d.NodeUnit; dlrover && u > 0 && (w.Min%u != 0 || w.Replicas%u != 0) {
		p.fail("spec.dlrover.nodeUnit", "order", "min %d and replicas %d must be multiples of %d", w.Min, w.Replicas, u)
	}
}

// dlroverMetadata refuses a name that is too long for the Service of the master, and an annotation that tegen sets.
func dlroverMetadata(p *Problems, dlrover bool, m *job.Metadata, workload map[string]string) {
	if !dlrover {
		return
	}
	if len(m.Name) > longestDLRoverName {
		p.fail("metadata.name", "range",
			"has %d characters, and the Service elasticjob-<name>-dlrover-master has room for %d", len(m.Name),
			longestDLRoverName)
	}
	for at, annotations := range map[string]map[string]string{
		"metadata.annotations": m.Annotations, "spec.workload.annotations": workload,
	} {
		if _, ok := annotations["pending_timeout"]; ok {
			p.failKey(at, "pending_timeout", "reserved", "is set by spec.dlrover.pendingTimeout")
		}
	}
}

// dlroverAmounts refuses amounts that the master rounds.
func dlroverAmounts(p *Problems, dlrover bool, cpu, memory job.Amount) {
	if dlrover && cpu.MilliValue()%100 != 0 {
		p.fail("spec.resources.cpu", "format", "DLRover's master rounds %s to tenths of a CPU: use a multiple of 100m",
			&cpu.Quantity)
	}
	if dlrover && memory.Value()%(1<<20) != 0 {
		p.fail("spec.resources.memory", "format", "DLRover's master rounds %s down to whole Mi: use a multiple of 1Mi",
			&memory.Quantity)
	}
}

// dlroverEnvironment refuses variables that the master sets.
func dlroverEnvironment(p *Problems, dlrover bool, variables map[string]string) {
	for at, name := range variables {
		if dlrover && slices.Contains(masterEnv, name) {
			p.fail(at, "reserved", "%s is set by DLRover's master", name)
		}
	}
}

// dlroverPods refuses what the master would not pass on to the workers, or would change.
func dlroverPods(p *Problems, dlrover bool, worker podPatch) {
	if dlrover && worker.Spec.TerminationGracePeriodSeconds != nil {
		p.fail("spec.podTemplate.spec.terminationGracePeriodSeconds", "requires",
			"DLRover's master gives every pod Kubernetes' own 30s: leave it out")
	}
	for i, c := range worker.Spec.Containers {
		if dlrover && c.Name == "worker" && c.Lifecycle != nil {
			p.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "requires",
				"DLRover's master drops it: leave it out")
		}
	}
}

// dlroverPriority refuses the names of classes of which the master dies (dlrover/python/common/node.py).
func dlroverPriority(p *Problems, dlrover bool, class string, worker podPatch) {
	for at, class := range map[string]string{
		"spec.placement.priorityClass":            class,
		"spec.podTemplate.spec.priorityClassName": worker.Spec.PriorityClassName,
	} {
		if dlrover && class != "" && class != "high" && class != "low" {
			p.fail(at, "requires", "DLRover's master ends at a class called %s: use high or low, the two that it takes",
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
func dlroverProgram(p *Problems, l *job.Launch) {
	if l != nil && !l.Dlrover() {
		p.fail("spec.command", "requires",
			"%s does not talk to DLRover's master: leave it out, tegen starts dlrover-run", l.Program)
	}
}

// DlroverNames refuses two DLRover jobs of one name, in whichever namespaces: its controller knows jobs by name alone
// (go/elasticjob/pkg/controllers).
func DlroverNames(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	first := map[string]string{}
	for i, l := range jobs {
		if !l.Knows(part.Framework, part.Metadata) || l.Job.Spec.Framework != job.FrameworkDLRover {
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

// elasticJobRendezvous holds a job to what TorchElastic's controller does on its own: it passes --rdzv_backend=etcd,
// --rdzv_endpoint, --rdzv_id and --nnodes to every container before its args, and nothing else.
func elasticJobRendezvous(p *Problems, elasticJob bool, backend, id string) {
	if elasticJob && backend != job.BackendEtcd {
		p.fail("spec.rendezvous.backend", "requires",
			"the controller of target elasticjob passes --rdzv_backend=etcd to every worker: set backend: etcd, and "+
				"store: etcd or external")
	}
	if elasticJob && id != "" {
		p.fail("spec.rendezvous.id", "requires",
			"the controller of target elasticjob names the run like the job: leave it out")
	}
}

// elasticJobProgram refuses a launcher that would not read the controller's options, or that has the same ones.
func elasticJobProgram(p *Problems, elasticJob bool, command []string, l *job.Launch) {
	if !elasticJob || l == nil {
		return
	}
	if last := len(command) - 1; last >= 0 && l.Program != "" && !job.LauncherWord().MatchString(command[last]) {
		p.fail(fmt.Sprintf("spec.command[%d]", last), "requires",
			"the controller of target elasticjob puts its options before args: let the command end with the "+
				"launcher, and move the rest to args")
	}
	for _, o := range l.Options {
		if o.Name == "nnodes" || strings.HasPrefix(o.Name, "rdzv_") && o.Name != "rdzv_conf" {
			p.fail(o.Path, "requires", "--%s is passed by the controller of target elasticjob: leave it out, "+
				"spec.workers and spec.rendezvous say it", o.Name)
		}
	}
}

// elasticJobContainers refuses containers beside the workers' own, which do not read the controller's options.
func elasticJobContainers(p *Problems, elasticJob bool, worker podPatch) {
	for i, c := range worker.Spec.Containers {
		if elasticJob && c.Name != "worker" {
			p.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d]", i), "requires",
				"the controller of target elasticjob passes the launcher's options to every container, which %q does "+
					"not read: target job or pytorchjob takes more containers", c.Name)
		}
	}
}

// elasticJobFailure refuses to leave killed workers as they are: TorchElastic's controller makes them again wherever it
// makes no others again (ExitCode, kubeflow/common v0.0.0-20200327002023-0b3a4c3fca85, pkg/util/train).
func elasticJobFailure(p *Problems, target string, leavesFailed bool, f *job.Failure) {
	const at = "spec.failure.ignoreDisruptions"
	if target == job.TargetElasticJob && leavesFailed && p.IsSet(at) && !f.IgnoreDisruptions {
		p.fail(at, "requires", "the controller of target elasticjob makes workers again that were killed where it "+
			"leaves those that failed: leave it out")
	}
}
