package generators

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// targetRow is how the pods of a framework come to be: a line for each of target.All.
type targetRow struct {
	framework, name string
	workloads       func(*job.Job) []runtime.Object // what makes the pods
	services        func(*job.Job) []runtime.Object // what names them in DNS, nil where a controller renders it
	owns            func(*job.Job, string) bool     // whether a Service of that name is the job's own
	roles           func(*job.Job) []role           // the kinds of pods, in the order in which they are rendered
	// The field of a pod that no two runs of a job share, "" where there is none.
	run string
}

// targets lists all of them in the order of target.All. It is a function, since what it lists refers to it, and an
// array, since it is asked many times for each job.
func targets() [20]targetRow {
	return [...]targetRow{
		{job.FrameworkTorchelastic, job.TargetJob, torchJob, roleServices, isRoleService, withGroups, jobUID},
		{job.FrameworkTorchelastic, job.TargetPods, torchPods, podServices, isPodService, workersOnly, ""},
		{job.FrameworkTorchelastic, job.TargetJobSet, torchJobSet, nil, isJobName, withGroups, jobUID},
		{job.FrameworkTorchelastic, job.TargetTrainJob, torchTrainJob, nil, isJobName, workersOnly, jobUID},
		{
			job.FrameworkTorchelastic, job.TargetVCJob, torchVCJob, nil, isJobName, withGroups,
			"metadata.annotations['" + apis.VCRunAnnotation + "']",
		},
		{
			job.FrameworkTorchelastic, job.TargetElasticJob, torchElasticJob, nil, isNumberedService, workersOnly,
			"",
		},
		{job.FrameworkTorchelastic, job.TargetPyTorchJob, pyTorchJob, nil, isNumberedService, workersOnly, ""},
		{job.FrameworkDLRover, job.TargetElasticJob, dlroverJob, nil, isDLRoverService, workersOnly, ""},
		{job.FrameworkMXNet, job.TargetJob, psJobs, roleServices, isRoleService, psRoles, ""},
		{job.FrameworkMXNet, job.TargetMXJob, mxJob, nil, isNumberedService, psRoles, ""},
		{job.FrameworkMXNet, job.TargetMXJobMlkube, mxJobMlkube, nil, isMlkubeService, psRoles, ""},
		{job.FrameworkHorovod, job.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{job.FrameworkHorovod, job.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
		{job.FrameworkByteScheduler, job.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{job.FrameworkByteScheduler, job.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
		{job.FrameworkJAX, job.TargetJob, torchJob, roleServices, isRoleService, withGroups, ""},
		{job.FrameworkJAX, job.TargetJobSet, torchJobSet, nil, isJobName, withGroups, ""},
		{job.FrameworkJAX, job.TargetTrainJob, torchTrainJob, nil, isJobName, workersOnly, ""},
		{job.FrameworkMPI, job.TargetJob, sshJob, sshService, isWorkerService, workersOnly, ""},
		{job.FrameworkMPI, job.TargetMPIJob, mpiJob, nil, isMPIService, launcherAndWorkers, ""},
	}
}

// jobUID is the label by which pods know the Job that made them.
const jobUID = "metadata.labels['" + batchv1.ControllerUidLabel + "']"

// targetOf is the job's target; schema.Load refuses what is not in the list, which TestTargets holds to target.All.
func targetOf(j *job.Job) *targetRow {
	framework := j.Spec.Framework
	if j.Spec.BytePS() {
		framework = job.FrameworkMXNet // the same pods: BytePS is ps-lite
	}
	all := targets()
	for i := range all {
		if all[i].framework == framework && all[i].name == j.Spec.Target {
			t := all[i]
			return &t
		}
	}
	panic("targets() in generators/targets.go has no line for target " + j.Spec.Target + " of framework " +
		j.Spec.Framework)
}

// role is one kind of pod that takes part in training.
type role struct {
	component string
	replicas  int32
	least     int32 // of them, without which there is no training
}

// roles lists the kinds of pods that the job's own templates make.
func roles(j *job.Job) []role { return targetOf(j).roles(j) }

func workersOnly(j *job.Job) []role {
	w := &j.Spec.Workers
	return []role{{componentWorker, w.Replicas, w.Min}}
}

func isWorkerService(j *job.Job, name string) bool { return name == workerName(j) }

// isJobName recognizes the Service that a controller names like its custom resource: the job's own name, or one with a
// hash.
func isJobName(j *job.Job, name string) bool {
	return isHashed(j, name, j.Metadata.Name)
}

// isHashed recognizes a name, and the same with a hash where the job's names have one.
func isHashed(j *job.Job, name, plain string) bool {
	rest, ours := strings.CutPrefix(name, plain)
	return ours && (rest == "" || j.Spec.HashedNames && nameHash().MatchString(rest))
}

var nameHash = lazy.Regexp(`^-[0-9a-f]{8}$`)

func isPodService(j *job.Job, name string) bool {
	return numberedFrom(name, workerName(j)+"-", j.Spec.Workers.FirstIndex, j.Spec.Workers.Replicas)
}

// numberedFrom says whether a name is prefix and one of count numbers from first.
func numberedFrom(name, prefix string, first, count int32) bool {
	number, ours := strings.CutPrefix(name, prefix)
	i, err := strconv.ParseInt(number, 10, 32)
	return ours && err == nil && int32(i) >= first && int32(i) < first+count
}
