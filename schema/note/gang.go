package note

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// elsewhereNotes tell what MultiKueue leaves behind. Its adapters create the job and its Workload in the worker
// cluster, and nothing that its pods use (kueue, pkg/controller/jobs, *_multikueue_adapter.go); its setup asks for
// namespaces and LocalQueues of the same names there.
func elsewhereNotes(s *job.Spec, namespace string) []string {
	if s.ManagedBy != job.MultiKueue || s.Gang == nil {
		return nil
	}
	needs := []string{"namespace " + namespace, "LocalQueue " + s.Gang.Queue}
	add := func(used bool, what string) {
		if used {
			needs = append(needs, what)
		}
	}
	add(s.Target == job.TargetTrainJob, "its TrainingRuntime")
	add(s.OwnAccount(), "its ServiceAccount")
	add(s.Target == job.TargetJob, "its headless Service")
	add(s.OverSSH(), "its ConfigMap and keys of ssh")
	add(s.Has(job.RoleEtcd) || s.Has(job.RoleCompanion), "the store where its workers meet")
	add(s.Resources.DeviceClass != "", "its ResourceClaimTemplate")
	add(len(s.Storage) > 0, "its volumes with their data")
	kind := target.For(s).Workload()
	return []string{fmt.Sprintf("spec.managedBy: Kueue copies the %s alone to a worker cluster, where it cannot "+
		"start without the rest: %s. Apply to each worker cluster all that is rendered but the %s, and create there "+
		"what its annotation %s names", kind, strings.Join(needs, ", "), kind, names.Expects)}
}

// gangPodNotes are what becomes of pods that a gang's scheduler did not count on: those beyond the minimum, those that
// take a lost one's place, and those by which an elastic job grows or shrinks. docs/gangs.md says where each is from.
func gangPodNotes(s *job.Spec) (notes []string) {
	g := s.Gang
	switch {
	case !g.Active():
		return nil
	case g.Is(job.GangKoordinator):
		notes = append(notes, koordinatorNotes(s)...)
	case g.Is(job.GangKueue):
		if s.Elastic() {
			notes = append(notes, "spec.workers.replicas: "+kueueScaling(s))
		}
		notes = append(append(notes, podsReadyNotes(s)...), keygenQueueNotes(s)...)
	case g.Is(job.GangKubernetes) && s.KubernetesVersion == "1.36" && s.Elastic() &&
		(s.Target == job.TargetJob || s.Target == job.TargetJobSet):
		notes = append(notes,
			"spec.workers.replicas: Kubernetes 1.36 refuses to change the parallelism of a Job whose PodGroup is a "+
				"gang: the job keeps the workers it is made with, of which minAvailable are enough to start")
	}
	notes = append(notes, topologyNotes(s)...)
	if g.Is(job.GangKoordinator, job.GangTegen) && g.MatchPolicy == "only-waiting" {
		notes = append(notes,
			fmt.Sprintf("spec.gang.matchPolicy: under only-waiting a pod that takes a lost one's place waits until "+
				"%d wait together, whatever runs", g.MinAvailable))
	}
	return notes
}

// koordinatorNotes: until 1.6 a Strict gang is tried in cycles, and a new one begins when as many pods as the gang's
// total have been tried in the last. Those that run are not tried again, so it may never begin. In 1.8 one pod of a
// gang is in the queue, and no event brings in those that were left when the minimum had been placed.
func koordinatorNotes(s *job.Spec) (notes []string) {
	g := s.Gang
	if g.Mode == "Strict" && g.MatchPolicy != "once-satisfied" {
		notes = append(notes,
			"spec.gang.mode: Koordinator 1.6 and before leaves a pod that comes to a Strict gang which runs, in "+
				"place of a lost one too, pending for ever where it finds no room at once: use a later one, or mode: "+
				"NonStrict, or set skipCheckScheduleCycle in the arguments of its plugin Coscheduling")
	}
	if g.MinAvailable < s.Workers.Replicas || s.Elastic() {
		notes = append(notes,
			"spec.gang.minAvailable: Koordinator 1.8 leaves pods beyond it pending although there is room, until "+
				"somebody deletes them and their controller makes others: name as many as there are workers, or use "+
				"scheduler: tegen, which reads the same annotations")
	}
	return notes
}

// kueueScaling is what Kueue makes of another number of workers in a job that it has admitted.
func kueueScaling(s *job.Spec) string {
	switch _, partial := s.Workload.Annotations[job.KueuePartialKey]; {
	case s.Target == job.TargetJob && s.Topology() != nil:
		return "Kueue changes the size of no Job that it places by topology: it stops the Job and admits it anew, so " +
			"that all workers end, and begin again together"
	case partial:
		return "Kueue starts the Job with as many workers as the quota has room for, and lets nobody change that " +
			"number until it stops the Job: more quota brings no more workers"
	case s.Target == job.TargetPods:
		return "Kueue deletes pods beyond the number that it admitted: to have more workers, let it admit the job anew"
	case s.Target == job.TargetJob:
		return "Kueue before 0.18, or without its feature gate ElasticJobsViaWorkloadSlices, stops an admitted Job " +
			"whose number of workers changes and admits it anew: all workers end, and begin again together"
	}
	return "Kueue stops an admitted job whose number of workers changes and admits it anew: all workers end, and " +
		"begin again together"
}

// podsReadyTimeout is how long Kueue waits for all pods of a job by default: waitForPodsReady.timeout, and
// recoveryTimeout for a pod that is lost later (v0.19.2, apis/config/v1beta2/defaults.go).
const podsReadyTimeout = 30 * time.Minute

// podsReadyNotes report that Kueue evicts a job one of whose pods is not ready for too long. A Job counts as ready only
// with all its pods (v0.19.2, pkg/controller/jobs/job/job_controller.go).
func podsReadyNotes(s *job.Spec) (notes []string) {
	if s.Workers.Min < s.Workers.Replicas {
		notes = append(notes, fmt.Sprintf("spec.workers.min: Kueue 0.19 and newer evicts all pods of the job if one "+
			"of %d is not ready for 30 minutes, although %d can train; raise timeout and recoveryTimeout of "+
			"waitForPodsReady in Kueue's configuration, or set min: %[1]d", s.Workers.Replicas, s.Workers.Min))
	}
	for i := range s.Storage {
		d := s.Storage[i].Dataset
		if d == nil || d.Deadline.Duration <= podsReadyTimeout {
			continue
		}
		notes = append(notes, fmt.Sprintf("spec.storage[%d].dataset.deadline: the workers wait up to %s for the "+
			"dataset, and Kueue 0.19 and newer evicts a job whose pods are not all ready within 30 minutes, again "+
			"each time it is admitted; fetch a large dataset before, or raise waitForPodsReady.timeout in Kueue's "+
			"configuration", i, job.Short(d.Deadline)))
	}
	return notes
}

// keygenQueueNotes report how Kueue can keep the Job from running that makes keys, without which no worker starts.
func keygenQueueNotes(s *job.Spec) []string {
	switch {
	case !s.MakesKeys():
		return nil
	case s.Proxied():
		return []string{"spec.gang.queue: the Job <job>-keygen and the rendezvous have no queue, so that they do not " +
			"wait for the quota of the workers. If Kueue manages jobs without a queue " +
			"(manageJobsWithoutQueueName), it never starts them, and the workers wait for the certificates: exclude " +
			"the namespace in its managedJobsNamespaceSelector"}
	}
	return []string{"spec.gang.queue: the Job <job>-keygen waits in the workers' queue. If Kueue admits the workers " +
		"first and no quota is left, they wait for their ssh keys, until Kueue evicts them: leave quota for both, or " +
		"set ssh.secret"}
}

// topologyNotes are what of a topology depends on the cluster's own lists of levels, where a scheduler that lacks one
// places the workers all the same, or none.
func topologyNotes(s *job.Spec) (notes []string) {
	t, g := s.Topology(), s.Gang
	if t == nil {
		return nil
	}
	note := func(text string) { notes = append(notes, "spec.gang.topology: "+text) }
	switch {
	case g.Is(job.GangVolcano) && t.Required():
		note("where no HyperNode has this tier, Volcano 1.15 places the workers as if they had no topology, without " +
			"a word; its scheduler needs the plugin network-topology-aware")
	case g.Is(job.GangKoordinator):
		note("Koordinator 1.6 does not know it; 1.8 needs --enable-network-topology-manager, and " +
			"awareNetworkTopology in the arguments of its plugin Coscheduling. It places all pods that wait, not " +
			"only the minimum, and one that replaces a lost one anywhere")
		if s.Target == job.TargetMPIJob {
			note("Koordinator places the launcher in the domain of the workers, and all of them wait where no node " +
				"there takes it: give roles.launcher their tolerations, or use kueue or tegen, which leave it out")
		}
	case g.Is(job.GangKubernetes):
		note("the feature gate TopologyAwareWorkloadScheduling is off by default, and without it the API server " +
			"refuses the PodGroup")
	case g.Is(job.GangKueue):
		note("Kueue admits the job where its queue's ResourceFlavor names a Topology with this level, and never " +
			"where none does")
	}
	return notes
}

// groupNotes tell what the numbers of a job with several groups, or with restarts of all, come to together.
func groupNotes(s *job.Spec) (notes []string) {
	f := &s.Failure
	if all := f.RestartAll; all != nil && f.RestartsPerWorker == nil && f.Restarts.Limit > 0 {
		notes = append(notes, fmt.Sprintf("spec.failure.restarts: it counts anew each time all pods are started anew: "+
			"of a group, %d pods may fail before the job does", (int32(*all)+1)*(f.Restarts.Limit+1)))
	}
	switch {
	case f.Deadline == nil || s.Target != job.TargetJobSet:
	case f.RestartAll != nil && *f.RestartAll > 0 || f.RestartAll != nil && f.IgnoreDisruptions:
		notes = append(notes, "spec.failure.deadline: the clock of a JobSet's Jobs starts anew with each restart of "+
			"all pods, so that the job may take several times as long")
	case s.Ordered():
		notes = append(notes, "spec.failure.deadline: each group has a clock of its own, which starts when the groups "+
			"before it let it start")
	}
	if len(s.Groups) > 0 && s.Target == job.TargetJob {
		notes = append(notes, "spec.groups: each group is a Job of its own: where one fails the others go on, and "+
			"wait for it until failure.deadline or for ever; target jobset ends all together")
	}
	return notes
}

// restartNotes tell what restarts in place, and of single groups, need beside the job.
func restartNotes(s *job.Spec) (notes []string) {
	f := &s.Failure
	if f.RestartAllInPlace {
		notes = append(notes, "spec.failure.restartAllInPlace: JobSet refuses it unless its feature gate "+
			"InPlaceRestart is on, which is off by default; each pod has to run its in-place-restart-agent, with a "+
			"service account that may get, list and watch JobSets and patch pods, and restartPolicyRules of "+
			"Kubernetes 1.35 or newer: put them into podTemplate, since without them nothing is restarted")
	}
	if slices.ContainsFunc(f.Rules, func(rule job.FailureRule) bool {
		return rule.Then == job.ThenRestartGroup || rule.Then == job.ThenRestartGroupUncounted
	}) {
		notes = append(notes, "spec.failure.rules: JobSet refuses the restart of single groups unless its feature "+
			"gate RestartJob is on, which is off by default")
	}
	return notes
}

// recreatedNotes tell what becomes of a run where a reconciler was told to make its workload anew.
func recreatedNotes(j *job.Job) (notes []string) {
	if !j.Spec.GitOps {
		return nil
	}
	w := &j.Spec.Workload
	for field, all := range map[string]map[string]string{"annotations": w.Annotations, "labels": w.Labels} {
		for key, value := range all {
			if names.Recreates(key, value) && !names.IsHook(key, value) {
				notes = append(notes, fmt.Sprintf("spec.workload.%s[%s]: %s has a reconciler delete the workload "+
					"where the API server refuses a change, or with each sync: a run ends there, and starts anew",
					field, key, job.Said(key, value)))
			}
		}
	}
	slices.Sort(notes)
	return notes
}

// volcanoNotes tell what of a Volcano Job ends otherwise than its author may think. It is complete where all pods have
// ended and as many have succeeded as start together (pkg/controllers/job/state/running.go).
func volcanoNotes(s *job.Spec) (notes []string) {
	if s.Target == job.TargetVCJob && s.Success != nil && s.Ordered() && s.Failure.GoesOn() {
		notes = append(notes, fmt.Sprintf("spec.success: pods that fail stay as they are, and where all pods have "+
			"ended Volcano takes the job for complete when enough others succeeded, though %s failed: keep another "+
			"group running until then", strings.Join(s.Success.Groups, " and ")))
	}
	return notes
}
