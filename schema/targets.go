package schema

import (
	"slices"
	"strings"
)

// Target is one thing that the workers of a framework can become.
type Target struct {
	Framework, Name string
	API             string // group/version kind of the object that makes the workers
	// Lacks names the features that the target's API cannot carry, each with the reason: the end of the sentence
	// "target x cannot carry this: …".
	Lacks map[string]string
}

// Targets lists every framework with every target, in the order of docs/support.md.
var Targets = []Target{
	{
		FrameworkTorchelastic, TargetJob, "batch/v1 Job",
		union(others(FrameworkTorchelastic), noMaster, ofJobs, jobGroupsLack, notVolcanos, lacks{
			"workers.firstIndex": "an Indexed Job counts from 0",
			"workers.slices":     onlySets,
		}),
	},
	{
		FrameworkTorchelastic, TargetPods, "v1 Pod",
		union(others(FrameworkTorchelastic), noMaster, noController, workersOnly, notVolcanos),
	},
	{
		FrameworkTorchelastic, TargetJobSet, "jobset.x-k8s.io/v1alpha2 JobSet",
		union(others(FrameworkTorchelastic), noMaster, ofJobs, countsFromZero, notVolcanos, seesJobs),
	},
	{
		FrameworkTorchelastic, TargetTrainJob, "trainer.kubeflow.org/v1alpha1 TrainJob",
		union(others(FrameworkTorchelastic), noMaster, ofJobs, countsFromZero, workersOnly, trainJobLacks,
			notVolcanos),
	},
	{
		FrameworkTorchelastic, TargetVCJob, "batch.volcano.sh/v1alpha1 Job",
		union(others(FrameworkTorchelastic), noMaster, countsFromZero, vcJobLacks),
	},
	{
		FrameworkTorchelastic, TargetElasticJob, "elastic.pytorch.org/v1alpha1 ElasticJob",
		union(others(FrameworkTorchelastic), noMaster, workersOnly, torchElasticJobLacks, notVolcanos),
	},
	{
		FrameworkTorchelastic, TargetPyTorchJob, "kubeflow.org/v1 PyTorchJob",
		union(others(FrameworkTorchelastic), workersOnly, pyTorchJobLacks, notVolcanos),
	},
	{
		FrameworkDLRover, TargetElasticJob, "elastic.iml.github.io/v1alpha1 ElasticJob",
		union(others(FrameworkDLRover), dlroverLacks),
	},
	{FrameworkMXNet, TargetJob, "batch/v1 Jobs, one a role", mxnetJob},
	{FrameworkMXNet, TargetMXJob, "kubeflow.org/v1 MXJob", mxjob},
	{FrameworkMXNet, TargetMXJobMlkube, "mxnet.mlkube.io/v1beta1 or mlkube.io/v1beta1 MxJob", mxjobMlkube},
	{
		FrameworkHorovod, TargetJob, "batch/v1 Job",
		union(others(FrameworkHorovod), ofJobs, horovodLacks, launchesInWorker),
	},
	{
		FrameworkHorovod, TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(horovodLacks, mpijobLacks, others(FrameworkHorovod)),
	},
	{
		FrameworkByteScheduler, TargetJob, "batch/v1 Job",
		union(others(FrameworkByteScheduler), ofJobs, horovodLacks, launchesInWorker, byteSchedulerLacks),
	},
	{
		FrameworkByteScheduler, TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(others(FrameworkByteScheduler), horovodLacks, mpijobLacks, byteSchedulerLacks),
	},
	{FrameworkJAX, TargetJob, "batch/v1 Job", union(others(FrameworkJAX), ofJobs, jobGroupsLack, jaxLacks, lacks{
		"workers.slices": onlySets,
	})},
	{
		FrameworkJAX, TargetJobSet, "jobset.x-k8s.io/v1alpha2 JobSet",
		union(others(FrameworkJAX), ofJobs, jaxLacks, seesJobs),
	},
	{
		FrameworkJAX, TargetTrainJob, "trainer.kubeflow.org/v1alpha1 TrainJob",
		union(others(FrameworkJAX), ofJobs, workersOnly, jaxLacks, expiringTrainJob),
	},
	{
		FrameworkMPI, TargetJob, "batch/v1 Job",
		union(others(FrameworkMPI), ofJobs, horovodLacks, launchesInWorker, mpiLacks, lacks{
			"ssh.server=" + SSHImage: "an Indexed Job gives no keys to an sshd of the image's: the MPI operator does",
		}),
	},
	{
		FrameworkMPI, TargetMPIJob, "kubeflow.org/v2beta1 MPIJob",
		union(others(FrameworkMPI), horovodLacks, mpijobLacks, mpiLacks),
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

// ownedBy starts the reason why a section of one framework is not for another.
const ownedBy = "it belongs to framework "

// others are the sections of all frameworks but one.
func others(framework string) lacks {
	all := lacks{}
	for section, owners := range map[string][]string{
		"launcher":   {FrameworkTorchelastic},
		"rendezvous": {FrameworkTorchelastic},

		"launcher=" + LauncherNone: {FrameworkTorchelastic},
		"workers.master":           {FrameworkTorchelastic},
		"workers.autoscale.cpu":    {FrameworkTorchelastic},
		"workers.slices":           {FrameworkTorchelastic, FrameworkJAX},

		"rendezvous.proxy":       {FrameworkTorchelastic},
		"rendezvous.maxRestarts": {FrameworkTorchelastic, FrameworkDLRover},

		"mxnet":   {FrameworkMXNet},
		"servers": {FrameworkMXNet, FrameworkByteScheduler},

		"roles.server":    {FrameworkMXNet, FrameworkByteScheduler},
		"roles.scheduler": {FrameworkMXNet, FrameworkByteScheduler},
		"roles.launcher":  {FrameworkHorovod, FrameworkByteScheduler, FrameworkMPI},
		"roles.etcd":      {FrameworkTorchelastic},
		"roles.companion": {FrameworkTorchelastic},

		"ssh":        {FrameworkHorovod, FrameworkByteScheduler, FrameworkMPI},
		"ssh.secret": {FrameworkHorovod, FrameworkByteScheduler, FrameworkMPI},

		"ssh.server=" + SSHImage: {FrameworkMPI},

		"horovod":       {FrameworkHorovod, FrameworkByteScheduler},
		"bytescheduler": {FrameworkByteScheduler},
		"dlrover":       {FrameworkDLRover},
		"jax":           {FrameworkJAX},
		"mpi":           {FrameworkMPI},

		"volcano.plugins": {FrameworkTorchelastic},

		"groups": grouped, "groups.after": grouped, "groups.after=" + WhenDone: grouped,
		"success": grouped, "success=" + WhenAll: grouped, "coordinator": grouped,
		"failure.restartAll": grouped, "failure.rules": grouped, "failure.restartAllInPlace": grouped,
		"failure.restartAllOn": grouped,
		"groups.failure":       grouped,

		"network.collective": {
			FrameworkTorchelastic, FrameworkDLRover, FrameworkHorovod, FrameworkByteScheduler, FrameworkMPI,
		},
	} {
		if !slices.Contains(owners, framework) {
			all[section] = ownedBy + strings.Join(owners, " and ")
		}
	}
	return all
}

// noController is what bare pods cannot do: nobody looks after them.
var noController = lacks{
	"managedBy":                 "bare pods have no controller whose place it could take",
	"workers.slices":            onlySets,
	"failure.restarts":          "bare pods have no controller that could do it",
	"failure.restarts=" + None:  "bare pods have no controller that could do it",
	"failure.restartsPerWorker": "bare pods have no controller that could do it",
	"failure.fatalExitCodes":    "bare pods have no controller that could do it",
	"failure.ignoreDisruptions": "bare pods have no controller that could do it",
	"failure.inPlace":           "the kubelet always does so with bare pods",
	"ttlAfterFinished":          "bare pods stay until somebody deletes them",
	"cleanPods":                 "bare pods stay until somebody deletes them",
	"hashedNames":               "bare pods have no controller that could do it",
}

// ofJobs is what a Job of Kubernetes itself leaves nobody to choose.
var ofJobs = lacks{
	"failure.restarts=" + None: "a Job that names no limit has one of 6",
	"cleanPods":                "a Job's controller always deletes those that still run, and no others",
}

// TargetOf returns the row of a framework and target, nil where there is none.
func TargetOf(framework, name string) *Target {
	i := slices.IndexFunc(Targets, func(t Target) bool { return t.Framework == framework && t.Name == name })
	if i < 0 {
		return nil
	}
	return &Targets[i]
}

// rowOf is the job's row of the table; a mode that makes other pods has a row of its own.
func rowOf(s *Spec) *Target {
	switch {
	case s.Target == TargetJob && s.BytePS():
		return &bytePSJob
	case s.Target == TargetJob && s.Framework == FrameworkMXNet && s.MXNet.Mode == MXNetLocal:
		return &mxnetLocalJob
	}
	return TargetOf(s.Framework, s.Target)
}

// Carries says whether the target can carry a feature.
func (t *Target) Carries(feature string) bool {
	_, no := t.Lacks[feature]
	return !no
}

// target refuses a target that the framework does not have.
func (r *validation) target() {
	s := &r.Spec
	if r.Row != nil {
		return
	}
	var names, having []string
	for _, t := range Targets {
		if t.Framework == s.Framework {
			names = append(names, t.Name)
		}
		if t.Name == s.Target {
			having = append(having, t.Framework)
		}
	}
	if r.IsSet("spec.target") {
		r.fail("spec.target", "target", "framework %s has no target %s: one of %s; or set spec.framework to one that "+
			"has it: %s", s.Framework, s.Target, strings.Join(names, ", "), strings.Join(having, ", "))
		return
	}
	r.fail("spec.framework", "target", "%s has no target %s, which is the default: set spec.target to one of %s",
		s.Framework, s.Target, strings.Join(names, ", "))
}
