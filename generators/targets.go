package generators

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema"
)

// target is how the pods of a framework come to be: a line for each of schema.Targets.
type target struct {
	framework, name string
	workloads       func(*schema.Job) []runtime.Object // what makes the pods
	services        func(*schema.Job) []runtime.Object // what names them in DNS, nil where a controller renders it
	owns            func(*schema.Job, string) bool     // whether a Service of that name is the job's own
	roles           func(*schema.Job) []role           // the kinds of pods, in the order in which they are rendered
	// The field of a pod that no two runs of a job share, "" where there is none.
	run string
}

// targets lists all of them in the order of schema.Targets. It is a function, since what it lists refers to it, and an
// array, since it is asked many times for each job.
func targets() [20]target {
	return [...]target{
		{schema.FrameworkTorchelastic, schema.TargetJob, torchJob, roleServices, isRoleService, withGroups, jobUID},
		{schema.FrameworkTorchelastic, schema.TargetPods, torchPods, podServices, isPodService, workersOnly, ""},
		{schema.FrameworkTorchelastic, schema.TargetJobSet, torchJobSet, nil, isJobName, withGroups, jobUID},
		{schema.FrameworkTorchelastic, schema.TargetTrainJob, torchTrainJob, nil, isJobName, workersOnly, jobUID},
		{
			schema.FrameworkTorchelastic, schema.TargetVCJob, torchVCJob, nil, isJobName, withGroups,
			"metadata.annotations['" + apis.VCRunAnnotation + "']",
		},
		{
			schema.FrameworkTorchelastic, schema.TargetElasticJob, torchElasticJob, nil, isNumberedService, workersOnly,
			"",
		},
		{schema.FrameworkTorchelastic, schema.TargetPyTorchJob, pyTorchJob, nil, isNumberedService, workersOnly, ""},
		{schema.FrameworkDLRover, schema.TargetElasticJob, dlroverJob, nil, isDLRoverService, workersOnly, ""},
		{schema.FrameworkMXNet, schema.TargetJob, psJobs, roleServices, isRoleService, psRoles, ""},
		{schema.FrameworkMXNet, schema.TargetMXJob, mxJob, nil, isNumberedService, psRoles, ""},
		{schema.FrameworkMXNet, schema.TargetMXJobMlkube, mxJobMlkube, nil, isMlkubeService, psRoles, ""},
		{schema.FrameworkHorovod, schema.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{schema.FrameworkHorovod, schema.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
		{schema.FrameworkByteScheduler, schema.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{schema.FrameworkByteScheduler, schema.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
		{schema.FrameworkJAX, schema.TargetJob, torchJob, roleServices, isRoleService, withGroups, ""},
		{schema.FrameworkJAX, schema.TargetJobSet, torchJobSet, nil, isJobName, withGroups, ""},
		{schema.FrameworkJAX, schema.TargetTrainJob, torchTrainJob, nil, isJobName, workersOnly, ""},
		{schema.FrameworkMPI, schema.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{schema.FrameworkMPI, schema.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
	}
}

// jobUID is the label by which pods know the Job that made them.
const jobUID = "metadata.labels['" + batchv1.ControllerUidLabel + "']"

// targetOf is the job's target; schema.Load refuses what is not in the list, which TestTargets holds to schema.Targets.
func targetOf(job *schema.Job) *target {
	framework := job.Spec.Framework
	if job.Spec.BytePS() {
		framework = schema.FrameworkMXNet // the same pods: BytePS is ps-lite
	}
	all := targets()
	for i := range all {
		if all[i].framework == framework && all[i].name == job.Spec.Target {
			t := all[i]
			return &t
		}
	}
	panic("targets() in generators/targets.go has no line for target " + job.Spec.Target + " of framework " +
		job.Spec.Framework)
}

// role is one kind of pod that takes part in training.
type role struct {
	component string
	replicas  int32
	least     int32 // of them, without which there is no training
}

// roles lists the kinds of pods that the job's own templates make.
func roles(job *schema.Job) []role { return targetOf(job).roles(job) }

func workersOnly(job *schema.Job) []role {
	w := &job.Spec.Workers
	return []role{{componentWorker, w.Replicas, w.Min}}
}

func isWorkerService(job *schema.Job, name string) bool { return name == workerName(job) }

// isJobName recognizes the Service that a controller names like its custom resource: the job's own name, or one with a
// hash.
func isJobName(job *schema.Job, name string) bool {
	return isHashed(job, name, job.Metadata.Name)
}

// isHashed recognizes a name, and the same with a hash where the job's names have one.
func isHashed(job *schema.Job, name, plain string) bool {
	rest, ours := strings.CutPrefix(name, plain)
	return ours && (rest == "" || job.Spec.HashedNames && nameHash().MatchString(rest))
}

var nameHash = lazy.Regexp(`^-[0-9a-f]{8}$`)

func isPodService(job *schema.Job, name string) bool {
	return numberedFrom(name, workerName(job)+"-", job.Spec.Workers.FirstIndex, job.Spec.Workers.Replicas)
}

// numberedFrom says whether a name is prefix and one of count numbers from first.
func numberedFrom(name, prefix string, first, count int32) bool {
	number, ours := strings.CutPrefix(name, prefix)
	i, err := strconv.ParseInt(number, 10, 32)
	return ours && err == nil && int32(i) >= first && int32(i) < first+count
}
