// Package target has what differs between targets: their kinds, what each cannot carry, and what was tried.
package target

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

// Expires returns how long after their end the workers' object, and Jobs that fetch datasets, delete themselves, as
// 168h; "" where nothing does.
func Expires(j *job.Job) string {
	s, t := &j.Spec, For(&j.Spec)
	fetches := slices.ContainsFunc(s.Storage, func(v job.Storage) bool { return v.Dataset != nil })
	if s.GitOps || s.TTLAfterFinished.None || t == nil || !fetches && !t.Carries("ttlAfterFinished") {
		return ""
	}
	return job.Short(s.TTLAfterFinished.Duration)
}

// Workload is the kind that the workers become.
func (t *Target) Workload() string {
	words := strings.Fields(t.API)
	i := slices.IndexFunc(words, func(w string) bool { return unicode.IsUpper(rune(w[0])) })
	return strings.TrimRight(words[i], "s,")
}

// Target is one thing that the workers of a framework can become.
type Target struct {
	Framework, Name string
	API             string // group/version kind of the object that makes the workers
	// Lacks names the features that the target's API cannot carry, each with the reason: the end of the sentence
	// "target x cannot carry this: …".
	Lacks map[string]string
}

// All lists every framework with every target, in the order of docs/support.md.
var All = []Target{
	{
		job.FrameworkTorchelastic, job.TargetJob, "batch/v1 Job",
		union(others(job.FrameworkTorchelastic), noMaster, ofJobs, jobGroupsLack, notVolcanos, lacks{
			"workers.firstIndex": "an Indexed Job counts from 0",
			"workers.slices":     onlySets,
		}),
	},
	{
		job.FrameworkTorchelastic, job.TargetPods, "v1 Pod",
		union(others(job.FrameworkTorchelastic), noMaster, noController, workersOnly, notVolcanos),
	},
	{
		job.FrameworkTorchelastic, job.TargetJobSet, "jobset.x-k8s.io/v1alpha2 JobSet",
		union(others(job.FrameworkTorchelastic), noMaster, ofJobs, countsFromZero, notVolcanos, seesJobs),
	},
	{
		job.FrameworkTorchelastic, job.TargetTrainJob, "trainer.kubeflow.org/v1alpha1 TrainJob",
		union(others(job.FrameworkTorchelastic), noMaster, ofJobs, countsFromZero, workersOnly, trainJobLacks,
			notVolcanos),
	},
	{
		job.FrameworkTorchelastic, job.TargetVCJob, "batch.volcano.sh/v1alpha1 Job",
		union(others(job.FrameworkTorchelastic), noMaster, countsFromZero, vcJobLacks),
	},
	{
		job.FrameworkTorchelastic, job.TargetElasticJob, "elastic.pytorch.org/v1alpha1 ElasticJob",
		union(others(job.FrameworkTorchelastic), noMaster, workersOnly, torchElasticJobLacks, notVolcanos),
	},
	{
		job.FrameworkTorchelastic, job.TargetPyTorchJob, "kubeflow.org/v1 PyTorchJob",
		union(others(job.FrameworkTorchelastic), workersOnly, pyTorchJobLacks, notVolcanos),
	},
	{
		job.FrameworkDLRover, job.TargetElasticJob, "elastic.iml.github.io/v1alpha1 ElasticJob",
		union(others(job.FrameworkDLRover), dlroverLacks),
	},
	{job.FrameworkMXNet, job.TargetJob, "batch/v1 Jobs, one a role", MxnetJob},
	{job.FrameworkMXNet, job.TargetMXJob, "kubeflow.org/v1 MXJob", mxjob},
	{job.FrameworkMXNet, job.TargetMXJobMlkube, "mxnet.mlkube.io/v1beta1 or mlkube.io/v1beta1 MxJob", mxjobMlkube},
	{
		job.FrameworkHorovod, job.TargetJob, "batch/v1 Job",
		union(others(job.FrameworkHorovod), ofJobs, horovodLacks, launchesInWorker),
	},
	{
		job.FrameworkHorovod, job.TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(horovodLacks, mpijobLacks, others(job.FrameworkHorovod)),
	},
	{
		job.FrameworkByteScheduler, job.TargetJob, "batch/v1 Job",
		union(others(job.FrameworkByteScheduler), ofJobs, horovodLacks, launchesInWorker, byteSchedulerLacks),
	},
	{
		job.FrameworkByteScheduler, job.TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(others(job.FrameworkByteScheduler), horovodLacks, mpijobLacks, byteSchedulerLacks),
	},
	{job.FrameworkJAX, job.TargetJob, "batch/v1 Job", union(others(job.FrameworkJAX), ofJobs, jobGroupsLack, jaxLacks,
		lacks{
			"workers.slices": onlySets,
		})},
	{
		job.FrameworkJAX, job.TargetJobSet, "jobset.x-k8s.io/v1alpha2 JobSet",
		union(others(job.FrameworkJAX), ofJobs, jaxLacks, seesJobs),
	},
	{
		job.FrameworkJAX, job.TargetTrainJob, "trainer.kubeflow.org/v1alpha1 TrainJob",
		union(others(job.FrameworkJAX), ofJobs, workersOnly, jaxLacks, expiringTrainJob),
	},
	{
		job.FrameworkMPI, job.TargetJob, "batch/v1 Job",
		union(others(job.FrameworkMPI), ofJobs, horovodLacks, launchesInWorker, mpiLacks, lacks{
			"ssh.server=" + job.SSHImage: "an Indexed Job gives no keys to an sshd of the image's: " +
				"the MPI operator does",
		}),
	},
	{
		job.FrameworkMPI, job.TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(others(job.FrameworkMPI), horovodLacks, mpijobLacks, mpiLacks),
	},
}

// lacks are reasons by feature.
type lacks = map[string]string

// union joins tables of what a target lacks.
func union(tables ...lacks) lacks {
	all := lacks{}
	for _, table := range tables {
		for feature, reason := range table {
			all[feature] = reason
		}
	}
	return all
}

// OwnedBy starts the reason why a section of one framework is not for another.
const OwnedBy = "it belongs to framework "

// others are the sections of all frameworks but one.
func others(framework string) lacks {
	all := lacks{}
	for section, owners := range map[string][]string{
		"launcher":   {job.FrameworkTorchelastic},
		"rendezvous": {job.FrameworkTorchelastic},

		"launcher=" + job.LauncherNone: {job.FrameworkTorchelastic},
		"workers.master":               {job.FrameworkTorchelastic},
		"workers.autoscale.cpu":        {job.FrameworkTorchelastic},
		"workers.slices":               {job.FrameworkTorchelastic, job.FrameworkJAX},

		"rendezvous.proxy":       {job.FrameworkTorchelastic},
		"rendezvous.maxRestarts": {job.FrameworkTorchelastic, job.FrameworkDLRover},

		"mxnet":   {job.FrameworkMXNet},
		"servers": {job.FrameworkMXNet, job.FrameworkByteScheduler},

		"roles.server":    {job.FrameworkMXNet, job.FrameworkByteScheduler},
		"roles.scheduler": {job.FrameworkMXNet, job.FrameworkByteScheduler},
		"roles.launcher":  {job.FrameworkHorovod, job.FrameworkByteScheduler, job.FrameworkMPI},
		"roles.etcd":      {job.FrameworkTorchelastic},
		"roles.companion": {job.FrameworkTorchelastic},

		"ssh":        {job.FrameworkHorovod, job.FrameworkByteScheduler, job.FrameworkMPI},
		"ssh.secret": {job.FrameworkHorovod, job.FrameworkByteScheduler, job.FrameworkMPI},

		"ssh.server=" + job.SSHImage: {job.FrameworkMPI},

		"horovod":       {job.FrameworkHorovod, job.FrameworkByteScheduler},
		"bytescheduler": {job.FrameworkByteScheduler},
		"dlrover":       {job.FrameworkDLRover},
		"jax":           {job.FrameworkJAX},
		"mpi":           {job.FrameworkMPI},

		"volcano.plugins": {job.FrameworkTorchelastic},

		"groups": grouped, "groups.after": grouped, "groups.after=" + job.WhenDone: grouped,
		"success": grouped, "success=" + job.WhenAll: grouped, "coordinator": grouped,
		"failure.restartAll": grouped, "failure.rules": grouped, "failure.restartAllInPlace": grouped,
		"failure.restartAllOn": grouped,
		"groups.failure":       grouped,

		"network.collective": {
			job.FrameworkTorchelastic, job.FrameworkDLRover, job.FrameworkHorovod, job.FrameworkByteScheduler,
			job.FrameworkMPI,
		},
	} {
		if !slices.Contains(owners, framework) {
			all[section] = OwnedBy + strings.Join(owners, " and ")
		}
	}
	return all
}

// noController is what bare pods cannot do: nobody looks after them.
var noController = lacks{
	"managedBy":                    "bare pods have no controller whose place it could take",
	"workers.slices":               onlySets,
	"failure.restarts":             "bare pods have no controller that could do it",
	"failure.restarts=" + job.None: "bare pods have no controller that could do it",
	"failure.restartsPerWorker":    "bare pods have no controller that could do it",
	"failure.fatalExitCodes":       "bare pods have no controller that could do it",
	"failure.ignoreDisruptions":    "bare pods have no controller that could do it",
	"failure.inPlace":              "the kubelet always does so with bare pods",
	"ttlAfterFinished":             "bare pods stay until somebody deletes them",
	"cleanPods":                    "bare pods stay until somebody deletes them",
	"hashedNames":                  "bare pods have no controller that could do it",
}

// ofJobs is what a Job of Kubernetes itself leaves nobody to choose.
var ofJobs = lacks{
	"failure.restarts=" + job.None: "a Job that names no limit has one of 6",
	"cleanPods":                    "a Job's controller always deletes those that still run, and no others",
}

// Of returns the row of a framework and target, nil where there is none.
func Of(framework, name string) *Target {
	i := slices.IndexFunc(All, func(t Target) bool { return t.Framework == framework && t.Name == name })
	if i < 0 {
		return nil
	}
	return &All[i]
}

// For is the job's row of the table; a mode that makes other pods has a row of its own.
func For(s *job.Spec) *Target {
	switch {
	case s.Target == job.TargetJob && s.BytePS():
		return &BytePSJob
	case s.Target == job.TargetJob && s.Framework == job.FrameworkMXNet && s.MXNet.Mode == job.MXNetLocal:
		return &MxnetLocalJob
	}
	return Of(s.Framework, s.Target)
}

// Carries says whether the target can carry a feature.
func (t *Target) Carries(feature string) bool {
	_, no := t.Lacks[feature]
	return !no
}

// Row is the job's row of the table, for rules; nil where the framework has no such target.
var Row = part.OfSpec("framework target mxnet.mode bytescheduler.mode", For)
