package schema

import (
	"fmt"
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

// Feature is a part of a job that not every target can carry.
type Feature struct {
	Name string // a field of the spec, or field=value; the key in Target.Lacks
	Doc  string // a few words for docs/support.md

	dependsOn string                     // the parts that used depends on
	used      func(*validation) []string // the paths where a job uses it
}

// Targets lists every framework with every target, in the order of docs/support.md.
var Targets = []Target{
	{FrameworkTorchelastic, TargetJob, "batch/v1 Job", union(others(FrameworkTorchelastic), noMaster, ofJobs, lacks{
		"workers.firstIndex": "an Indexed Job counts from 0",
	})},
	{FrameworkTorchelastic, TargetPods, "v1 Pod", union(others(FrameworkTorchelastic), noMaster, noController)},
	{
		FrameworkTorchelastic, TargetJobSet, "jobset.x-k8s.io/v1alpha2 JobSet",
		union(others(FrameworkTorchelastic), noMaster, ofJobs, countsFromZero),
	},
	{
		FrameworkTorchelastic, TargetTrainJob, "trainer.kubeflow.org/v1alpha1 TrainJob",
		union(others(FrameworkTorchelastic), noMaster, ofJobs, countsFromZero, trainJobLacks),
	},
	{
		FrameworkTorchelastic, TargetVCJob, "batch.volcano.sh/v1alpha1 Job",
		union(others(FrameworkTorchelastic), noMaster, countsFromZero, vcJobLacks),
	},
	{
		FrameworkTorchelastic, TargetElasticJob, "elastic.pytorch.org/v1alpha1 ElasticJob",
		union(others(FrameworkTorchelastic), noMaster, torchElasticJobLacks),
	},
	{
		FrameworkTorchelastic, TargetPyTorchJob, "kubeflow.org/v1 PyTorchJob",
		union(others(FrameworkTorchelastic), pyTorchJobLacks),
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

		"launcher=" + LauncherTegen: {FrameworkTorchelastic},
		"workers.master":            {FrameworkTorchelastic},

		"rendezvous.maxRestarts": {FrameworkTorchelastic, FrameworkDLRover},

		"mxnet":   {FrameworkMXNet},
		"servers": {FrameworkMXNet, FrameworkByteScheduler},

		"roles.server":    {FrameworkMXNet, FrameworkByteScheduler},
		"roles.scheduler": {FrameworkMXNet, FrameworkByteScheduler},
		"roles.launcher":  {FrameworkHorovod, FrameworkByteScheduler},
		"roles.etcd":      {FrameworkTorchelastic},
		"roles.companion": {FrameworkTorchelastic},

		"ssh":           {FrameworkHorovod, FrameworkByteScheduler},
		"ssh.secret":    {FrameworkHorovod, FrameworkByteScheduler},
		"horovod":       {FrameworkHorovod, FrameworkByteScheduler},
		"bytescheduler": {FrameworkByteScheduler},
		"dlrover":       {FrameworkDLRover},

		"network.collective": {FrameworkTorchelastic, FrameworkDLRover, FrameworkHorovod, FrameworkByteScheduler},
	} {
		if !slices.Contains(owners, framework) {
			all[section] = ownedBy + strings.Join(owners, " and ")
		}
	}
	return all
}

// noController is what bare pods cannot do: nobody looks after them.
var noController = lacks{
	"failure.restarts":          "bare pods have no controller that could do it",
	"failure.restarts=" + None:  "bare pods have no controller that could do it",
	"failure.restartsPerWorker": "bare pods have no controller that could do it",
	"failure.fatalExitCodes":    "bare pods have no controller that could do it",
	"failure.ignoreDisruptions": "bare pods have no controller that could do it",
	"ttlAfterFinished":          "bare pods stay until somebody deletes them",
	"cleanPods":                 "bare pods stay until somebody deletes them",
	"hashedNames":               "bare pods have no controller that could do it",
}

// ofJobs is what a Job of Kubernetes itself leaves nobody to choose.
var ofJobs = lacks{
	"failure.restarts=" + None: "a Job that names no limit has one of 6",
	"cleanPods":                "a Job's controller always deletes those that still run, and no others",
}

// Features lists what targets differ in, in the order of job.cue.
var Features = slices.Concat([]Feature{
	written("launcher", "who starts the processes"),
	{"launcher=" + LauncherTegen, "tegen's own launcher", "launcher", tegenRun},
	written("workingDir", "the directory that the program starts in"),
	written("env", "environment variables of the workers"),
	{
		"workers.min", "elastic: fewer workers than the maximum train", "workers.replicas workers.min workers.max",
		elastic,
	},
	written("workers.firstIndex", "pods counted from 1"),
	{
		"workers.master", "a Master, for programs that meet at it by themselves", "workers.master",
		func(r *validation) []string { return when(r.Spec.Workers.Master, "workers.master") },
	},
	writtenOf("resources", "resources", "requests that are not the limits, or none", "requests", "limits"),
	writtenOf("rendezvous", "rendezvous", "backend and store of the rendezvous", "backend", "store", "endpoint", "port",
		"id", "etcd", "companion", "keepAlive", "keepAliveAttempts"),
	writtenOf("rendezvous.maxRestarts", "rendezvous", "timeouts and restarts of the rendezvous", "maxRestarts",
		"lastCall", "joinTimeout", "conf"),
	written("servers", "parameter servers"),
	written("ssh", "port and keys of ssh"),
	written("ssh.secret", "ssh keys that exist already"),
	{"mxnet", "a worker alone, and names of MXNet's first operator", "mxnet", mxnetNames},
	written("horovod", "controller and timeouts of Horovod"),
	written("bytescheduler", "tuning of ByteScheduler, BytePS"),
	written("dlrover", "strategy of DLRover"),
}, gangFeatures(), []Feature{
	{
		"suspend", "no training pod starts", "suspend",
		func(r *validation) []string { return when(r.Spec.Suspend, "suspend") },
	},
	written("storage", "volumes"),
	{"storage.dataset", "datasets fetched before training", "storage", fetchedData},
	written("checkpoint", "a place for checkpoints"),
	written("script.image", "a script in the image"),
	written("script.s3", "a script in S3"),
	written("script.configMap", "a script in a ConfigMap"),
	written("identity", "cloud identity"),
	written("network.host", "the node's network"),
	written("network.interface", "the interface of NCCL and Gloo"),
	written("network.collective", "the collective backend"),
	written("placement.scheduler", "a scheduler by name"),
	written("placement.priorityClass", "priority"),
	written("placement.preemptionPolicy", "whether pending pods push out others"),
	written("placement.runtimeClass", "runtime class"),
	written("placement.nodeSelector", "node selector"),
	written("placement.tolerations", "tolerations"),
	{"security.runAsGroup", "the group of the processes", "security", ownGroup},
	written("failure.restarts", "failed pods that the job survives"),
	{"failure.restarts=" + None, "no limit on them", "target failure", endless},
	{"failure.restartsPerWorker", "failed pods that a worker survives", "target failure", perWorker},
	written("failure.fatalExitCodes", "exit codes that end the job"),
	written("failure.ignoreDisruptions", "drains and preemptions are no failures"),
	written("failure.deadline", "a limit on time"),
	written("gracePeriod", "time to write a checkpoint in"),
	written("ttlAfterFinished", "finished jobs are deleted"),
	written("cleanPods", "pods that are deleted when the job is over"),
	written("hashedNames", "names that change with the template"),
	roleOf("roles.server", "resources, nodes and pods of the parameter servers"),
	roleOf("roles.scheduler", "resources, nodes and pods of their scheduler"),
	roleOf("roles.launcher", "resources, nodes and pods of the launcher"),
	roleOf("roles.etcd", "resources, nodes and pods of an etcd"),
	roleOf("roles.companion", "resources, nodes and pods of a companion"),
	roleOf("roles.helper", "resources, nodes and pods of what prepares the job"),
	written("podTemplate", "any further field of the workers' pods"),
})

// written is a feature that is used wherever its field is given, in the author's file or by an environment.
func written(field, doc string) Feature {
	return Feature{field, doc, "target", func(r *validation) []string { return when(r.isSet("spec."+field), field) }}
}

// roleOf is a feature that is used wherever a role is spoken of. Its refusal names the roles that the job has instead.
func roleOf(field, doc string) Feature {
	f := written(field, doc)
	f.dependsOn += " workers.max rendezvous.store storage ssh"
	return f
}

// writtenOf is a feature that is used wherever one of some fields of a section is given.
func writtenOf(name, section, doc string, fields ...string) Feature {
	return Feature{name, doc, "target", func(r *validation) (paths []string) {
		for _, field := range fields {
			paths = append(paths, when(r.isSet("spec."+section+"."+field), section+"."+field)...)
		}
		return paths
	}}
}

// gangFeatures are the dialects of gang scheduling.
func gangFeatures() (all []Feature) {
	for _, d := range Dialects {
		all = append(all, Feature{
			"gang.scheduler=" + d.Name, "gang of " + d.Name, "gang",
			func(r *validation) []string {
				return when(r.Spec.Gang.Is(d.Name), "gang.scheduler")
			},
		})
	}
	return all
}

// tegenRun passes over frameworks that have no launcher to choose, since launcher says so already.
func tegenRun(r *validation) []string { return when(r.Spec.TegenRun(), "launcher") }

func elastic(r *validation) []string {
	w := &r.Spec.Workers
	field := "workers.min"
	if !r.isSet("spec.workers.min") {
		field = "workers.max"
	}
	return when(w.Min < w.Max, field)
}

// endless passes over targets that count no restarts, since failure.restarts says so already.
func endless(r *validation) []string {
	return when(r.Spec.Failure.Restarts.None && (r.row == nil || r.row.Carries("failure.restarts")), "failure.restarts")
}

// perWorker passes over a Volcano Job whose failed pods stay as they are, which needs no counting.
func perWorker(r *validation) []string {
	n := r.Spec.Failure.RestartsPerWorker
	return when(n != nil && (*n > 0 || r.Spec.Target != TargetVCJob), "failure.restartsPerWorker")
}

func fetchedData(r *validation) (paths []string) {
	for i := range r.Spec.Storage {
		paths = append(paths, when(r.Spec.Storage[i].Dataset != nil, fmt.Sprintf("storage[%d].dataset", i))...)
	}
	return paths
}

// ownGroup passes over the default, which is rendered for every target.
func ownGroup(r *validation) []string {
	group := r.Spec.Security.RunAsGroup
	return when(r.isSet("spec.security.runAsGroup") && group.Number != nil && !group.Is(65534), "security.runAsGroup")
}

func when(used bool, field string) []string {
	if !used {
		return nil
	}
	return []string{"spec." + field}
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
	if r.row != nil {
		return
	}
	var names []string
	for _, t := range Targets {
		if t.Framework == s.Framework {
			names = append(names, t.Name)
		}
	}
	if r.isSet("spec.target") {
		r.fail("spec.target", "target", "framework %s has no target %s: one of %s", s.Framework, s.Target,
			strings.Join(names, ", "))
		return
	}
	r.fail("spec.framework", "target", "%s has no target %s, which is the default: set spec.target to one of %s",
		s.Framework, s.Target, strings.Join(names, ", "))
}

// featureRules refuse what a target cannot carry, a rule a feature, so that a mistake elsewhere hides none of them.
func featureRules() []rule {
	out := make([]rule, len(Features))
	for i, f := range Features {
		out[i] = rule{func(r *validation) { r.carries(f) }, "framework target mxnet.mode bytescheduler.mode " +
			f.dependsOn}
	}
	return out
}

func (r *validation) carries(f Feature) {
	t := r.row
	if t == nil || t.Carries(f.Name) {
		return
	}
	can := instead(t.Framework, f.Name)
	if strings.HasPrefix(f.Name, "roles.") {
		can += "; as for this job, " + r.Spec.othersWords()
	}
	for _, path := range f.used(r) {
		r.fail(path, "target", "target %s of framework %s cannot carry this: %s; %s", t.Name, t.Framework,
			t.Lacks[f.Name], can)
	}
}

// instead names the targets that can carry a feature: of the same framework, or else of any.
func instead(framework, feature string) string {
	var same, any []string
	for _, t := range Targets {
		switch {
		case !t.Carries(feature):
		case t.Framework == framework:
			same = append(same, t.Name)
		case !slices.Contains(any, t.Framework):
			any = append(any, t.Framework)
		}
	}
	switch {
	case len(same) > 0:
		return "target " + strings.Join(same, ", ") + " can"
	case len(any) > 0:
		return "framework " + strings.Join(any, ", ") + " can"
	}
	return "no target can"
}
