// Package note says what somebody who applies a job should know, where nothing in it is a mistake.
package note

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// Of are what somebody who applies the job should know and no mistake of theirs: a sentence each, for standard
// error.
func Of(j *job.Job) (notes []string) {
	notes = append(notes, j.Origin.Secrets...)
	if j.Spec.Framework == job.FrameworkDLRover && j.Spec.Suspend {
		notes = append(notes,
			"spec.suspend: DLRover starts the job's master all the same, and workers that run already are not stopped")
	}
	if j.Spec.Target == job.TargetMXJob {
		notes = append(notes, "spec.target: training-operator 1.8.1 is the last release that has MXJob")
	}
	if t := j.Spec.Target; j.Spec.Failure.Deadline != nil && (t == job.TargetMXJob || t == job.TargetPyTorchJob) {
		notes = append(notes, "spec.failure.deadline: the operator of this target sets no clock for it: a job whose "+
			"time is up ends at the next change of itself or of one of its pods, which may be hours later")
	}
	if note := taintNote(j); note != "" {
		notes = append(notes, "spec.placement.tolerations: "+note)
	}
	if note := gangNote(&j.Spec); note != "" {
		notes = append(notes, "spec.gang.scheduler: "+note)
	}
	notes = append(notes, gangPodNotes(&j.Spec)...)
	notes = append(notes, jaxNotes(&j.Spec)...)
	notes = append(notes, ImageSSHNotes(&j.Spec)...)
	notes = append(notes, claimNotes(&j.Spec)...)
	notes = append(notes, SharedNotes(&j.Spec)...)
	notes = append(notes, machineNotes(j)...)
	notes = append(notes, AcceleratorNotes(j)...)
	if j.Spec.ParameterServers() && j.Spec.Target == job.TargetJob && j.Spec.Failure.Deadline == nil {
		notes = append(notes,
			"spec.failure.deadline: none is set, and when a pod is lost those of the other roles wait in vain, with "+
				"their accelerators, until somebody deletes the job")
	}
	if note := storeNote(&j.Spec); note != "" {
		notes = append(notes, "spec.failure.restarts: "+note)
	}
	notes = append(notes, proxyNotes(&j.Spec)...)
	notes = append(notes, groupNotes(&j.Spec)...)
	notes = append(notes, volcanoNotes(&j.Spec)...)
	if j.Spec.Target == job.TargetElasticJob && j.Spec.LeavesFailed() {
		notes = append(notes, "spec.failure.restartsPerWorker: once a worker has been given up, the controller of "+
			"this target takes the job for neither complete nor failed; and it makes killed workers again without "+
			"limit, also those that ran out of memory")
	}
	if j.Spec.Target == job.TargetElasticJob && j.Spec.Framework == job.FrameworkTorchelastic {
		notes = append(notes, "spec.target: the CRD in TorchElastic's release has no spec.RunPolicy, so the API "+
			"server drops it, and failure.restarts and cleanPods have no effect; apply the CRD that `tegen install "+
			"crds` prints")
	}
	notes = append(notes, restartNotes(&j.Spec)...)
	notes = append(notes, autoscaleNotes(j)...)
	if note := workingDirNote(&j.Spec); note != "" {
		notes = append(notes, "spec.image: "+note)
	}
	notes = append(notes, directoryNotes(&j.Spec)...)
	notes = append(notes, SpotNotes(&j.Spec)...)
	notes = append(notes, elsewhereNotes(&j.Spec, j.Metadata.Namespace)...)
	notes = append(notes, CodeNotes(&j.Spec)...)
	notes = append(notes, datasetNotes(&j.Spec)...)
	notes = append(notes, TakenNotes(j)...)
	notes = append(notes, changeNotes(j)...)
	notes = append(notes, lifetimeNotes(j)...)
	notes = append(notes, recreatedNotes(j)...)
	notes = append(notes, accountNotes(j)...)
	notes = append(notes, scriptNotes(&j.Spec)...)
	notes = append(notes, AloneNotes(&j.Spec)...)
	notes = append(notes, SilentNotes(j)...)
	notes = append(notes, EnvNotes(&j.Spec)...)
	notes = append(notes, probeNotes(&j.Spec)...)
	notes = append(notes, networkNotes(&j.Spec)...)
	notes = append(notes, namespaceNotes(j)...)
	notes = append(notes, imageNotes(&j.Spec)...)
	if j.Origin.Released {
		notes = append(notes, fmt.Sprintf("spec.images.rendezvous: none is named, so it is this release's, and "+
			"another release changes the pods that have it: to decide when, name %s in an Environment's defaults",
			j.Spec.Images.Rendezvous))
	}
	return append(notes, runNotes(j)...)
}

// storeNote is what the loss of a store costs whose data is the memory of one pod, the companion or worker 0: agents of
// c10d end with their store, all of them, which are more failures than the job has left. No default can say it: one
// that grew with the workers would also start a program that is wrong many times over. Who sets 0 wants to see the
// first failure.
func storeNote(s *job.Spec) string {
	t, f, needed := target.For(s), &s.Failure, s.Workers.SliceSize()
	if s.Target == job.TargetPyTorchJob {
		// its operator ends the job at the limit (kubeflow/training-operator pkg/core/job.go), others beyond it
		needed++
	}
	var lost, other string
	switch {
	case s.Target == job.TargetTrainJob && s.Torchrun(), s.Framework == job.FrameworkJAX && s.Workers.Replicas > 1:
		// A static rendezvous, in which nobody can form another world. The first pod in the place of the lost one may
		// fail with the others.
		needed, lost = needed+1, "any of them"
	case s.Rendezvous.Backend != job.BackendC10d || !t.Carries("rendezvous") || s.Proxied():
	case s.Rendezvous.Store == job.StoreCompanion:
		lost = "the pod of the c10d store"
	case s.Rendezvous.Store == job.StoreWorker:
		lost = "worker 0, the c10d store,"
	}
	if lost == "" || !t.Carries("failure.restarts") || f.RestartsPerWorker != nil || f.Restarts.None ||
		f.Restarts.Limit == 0 || f.Restarts.Limit >= needed {
		return ""
	}
	remedy := fmt.Sprintf("set it to %d or more for each loss that the job is to survive", needed)
	if t.Carries("failure.restartsPerWorker") {
		remedy += ", or failure.restartsPerWorker in its place"
	}
	if t.Carries("rendezvous.proxy") {
		other = ", or give a companion (rendezvous.store) storage or an etcd: torchrun then waits behind a proxy " +
			"until the store is back"
		if !s.Torchrun() && len(s.Command) == 0 { // a proxy starts a command, not an image's entrypoint
			other = ", or write the image's entrypoint into command and" + strings.TrimPrefix(other, ", or")
		}
	}
	return fmt.Sprintf("%d is too low for %d workers: when %s is lost, all workers fail at once, and the job with "+
		"them; %s%s", f.Restarts.Limit, s.Workers.Replicas, lost, remedy, other)
}

// gangNote is what must have been switched on in the cluster, where it is off by default and pods would otherwise be
// placed one by one, or not at all. A PyTorchJob needs no flag: its pods are in a PodGroup of ours.
func gangNote(s *job.Spec) string {
	switch {
	case s.Target == job.TargetMPIJob && s.MakesPodGroup(): // as kubeflow/trainer#1825
		return fmt.Sprintf("the MPI operator must have been started with --gang-scheduling=%s, or it makes no "+
			"PodGroup and %s sees no gang", s.Gang.SchedulerName(), s.Gang.Scheduler)
	case s.Target == job.TargetPyTorchJob && s.Gang.Is(job.GangKueue):
		return "Kueue's integration kubeflow.org/pytorchjob is off by default, and without it the job does not wait " +
			"in the queue"
	case s.Gang.Is(job.GangKubernetes) && s.KubernetesVersion == "1.36":
		return "the feature gates GenericWorkload and GangScheduling, and the API scheduling.k8s.io/v1alpha2, are " +
			"off by default in 1.36"
	case s.Gang.Is(job.GangKubernetes):
		return "the feature gate GenericWorkload, and the API scheduling.k8s.io/v1beta1, are off by default in 1.37"
	}
	return ""
}
