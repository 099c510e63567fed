package schema

import "fmt"

var autoscaleRules = []rule{
	{(*validation).autoscale, "workers resources.cpu resources.requests.cpu launcher rendezvous"},
}

// autoscale refuses an autoscaler that could not change anything, or would not know what to compare. Its operator makes
// one of the bounds and metrics of an elastic policy (training-operator v1.9.4, pkg/controller.v1/pytorch/hpa.go).
func (r *validation) autoscale() {
	const at = "spec.workers.autoscale"
	w, s := &r.Spec.Workers, &r.Spec
	asksCPU := s.Resources.amount(s.Resources.Requests, resourceCPU) != nil
	switch {
	case w.Autoscale == nil:
	case w.Min == w.Max:
		r.fail(at, "requires", "there are always %d workers: set workers.min below workers.max, or leave it out", w.Min)
	case s.WithoutRendezvous():
		r.fail(at, "requires", "its operator makes an autoscaler for jobs with a rendezvous alone: leave it out")
	case !asksCPU:
		r.fail(at, "requires", "a percentage is one of the CPU that workers request, and they request none: set "+
			"resources.cpu")
	}
}

// autoscaleNotes tell who else writes the number of workers.
func (j *Job) autoscaleNotes() []string {
	if j.Spec.Workers.Autoscale == nil || !j.Spec.GitOps {
		return nil
	}
	return []string{fmt.Sprintf("spec.workers.autoscale: the autoscaler writes the number of workers, and a "+
		"reconciler writes %d back: have it ignore /spec/pytorchReplicaSpecs/Worker/replicas", j.Spec.Workers.Replicas)}
}
