package schema

import (
	"fmt"
	"time"
)

// gangPodNotes are what becomes of pods that a gang's scheduler did not count on: those beyond the minimum, those that
// take a lost one's place, and those by which an elastic job grows or shrinks. docs/gangs.md says where each is from.
func (s *Spec) gangPodNotes() (notes []string) {
	g := s.Gang
	switch {
	case !g.Active():
		return nil
	case g.Is(GangKoordinator):
		notes = append(notes, s.koordinatorNotes()...)
	case g.Is(GangKueue):
		if s.Elastic() {
			notes = append(notes, "spec.workers.replicas: "+s.kueueScaling())
		}
		notes = append(append(notes, s.podsReadyNotes()...), s.keygenQueueNotes()...)
	case g.Is(GangKubernetes) && s.KubernetesVersion == "1.36" && s.Elastic() &&
		(s.Target == TargetJob || s.Target == TargetJobSet):
		notes = append(notes,
			"spec.workers.replicas: Kubernetes 1.36 refuses to change the parallelism of a Job whose PodGroup is a "+
				"gang: the job keeps the workers it is made with, of which minAvailable are enough to start")
	}
	notes = append(notes, s.topologyNotes()...)
	if g.Is(GangKoordinator, GangTegen) && g.MatchPolicy == "only-waiting" {
		notes = append(notes,
			fmt.Sprintf("spec.gang.matchPolicy: under only-waiting a pod that takes a lost one's place waits until "+
				"%d wait together, whatever runs", g.MinAvailable))
	}
	return notes
}

// koordinatorNotes: until 1.6 a Strict gang is tried in cycles, and a new one begins when as many pods as the gang's
// total have been tried in the last. Those that run are not tried again, so it may never begin. In 1.8 one pod of a
// gang is in the queue, and no event brings in those that were left when the minimum had been placed.
func (s *Spec) koordinatorNotes() (notes []string) {
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
func (s *Spec) kueueScaling() string {
	switch _, partial := s.Workload.Annotations[KueuePartialKey]; {
	case s.Target == TargetJob && s.Topology() != nil:
		return "Kueue changes the size of no Job that it places by topology: it stops the Job and admits it anew, so " +
			"that all workers end, and begin again together"
	case partial:
		return "Kueue starts the Job with as many workers as the quota has room for, and lets nobody change that " +
			"number until it stops the Job: more quota brings no more workers"
	case s.Target == TargetPods:
		return "Kueue deletes pods beyond the number that it admitted: to have more workers, let it admit the job anew"
	case s.Target == TargetJob:
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
func (s *Spec) podsReadyNotes() (notes []string) {
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
			"configuration", i, short(d.Deadline)))
	}
	return notes
}

// keygenQueueNotes report how Kueue can keep the Job from running that makes keys, without which no worker starts.
func (s *Spec) keygenQueueNotes() []string {
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
func (s *Spec) topologyNotes() (notes []string) {
	t, g := s.Topology(), s.Gang
	if t == nil {
		return nil
	}
	note := func(text string) { notes = append(notes, "spec.gang.topology: "+text) }
	switch {
	case g.Is(GangVolcano) && t.Required():
		note("where no HyperNode has this tier, Volcano 1.15 places the workers as if they had no topology, without " +
			"a word; its scheduler needs the plugin network-topology-aware")
	case g.Is(GangKoordinator):
		note("Koordinator 1.6 does not know it; 1.8 needs --enable-network-topology-manager, and " +
			"awareNetworkTopology in the arguments of its plugin Coscheduling. It places all pods that wait, not " +
			"only the minimum, and one that replaces a lost one anywhere")
		if s.Target == TargetMPIJob {
			note("Koordinator places the launcher in the domain of the workers, and all of them wait where no node " +
				"there takes it: give roles.launcher their tolerations, or use kueue or tegen, which leave it out")
		}
	case g.Is(GangKubernetes):
		note("the feature gate TopologyAwareWorkloadScheduling is off by default, and without it the API server " +
			"refuses the PodGroup")
	case g.Is(GangKueue):
		note("Kueue admits the job where its queue's ResourceFlavor names a Topology with this level, and never " +
			"where none does")
	}
	return notes
}
