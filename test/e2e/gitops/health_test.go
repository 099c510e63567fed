package gitops

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
)

// howJobsAre: what is seen of jobs whose controllers say how they are: by Argo CD with the rules of 'config', by Flux
// with --wait, which waits for the custom resources alone.
func howJobsAre(p *place) {
	var flags []string
	if p.Name() == "Flux" {
		flags = []string{"--wait"}
	}
	p.healthJobs("suspend: true")
	p.commit("Queue three jobs")
	t := p.generate("health", flags...)
	job, set, torch := t.of("job"), t.of("set"), t.of("torch")
	all := []*place{job, set, torch}
	for _, one := range all {
		one.seen("Suspended", "ReconciliationSucceeded")
	}

	p.healthJobs()
	p.commit("Train them")
	job.seen("Progressing", "ReconciliationSucceeded")
	set.seen("Progressing", "Progressing")
	torch.seen("Progressing", "Progressing")
	p.addNode()
	p.running(6)
	for _, one := range all {
		one.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
	}
	if p.Name() == "Flux" {
		job.waits()
	}

	p.endOf("job", cluster.OutcomeSucceeded)
	p.endOf("set", cluster.OutcomeFailed)
	p.endOf("torch", cluster.OutcomeSucceeded)
	job.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
	p.eventually("the end of the JobSet", func() error { return says(p.the(jobSets), "Failed") })
	set.seen("Degraded", "HealthCheckFailed")
	p.eventually("the end of the PyTorchJob", func() error { return says(p.the(pyTorchJobs), "Succeeded") })
	torch.seen("Healthy", "ReconciliationSucceeded")
	status, err := set.Status(p.Context(), set.app)
	p.Logf("the JobSet failed: %s (%v)", status, err)
}

// healthJobs are a Job, a JobSet and a PyTorchJob, for a node that is not there at first.
func (p *place) healthJobs(fields ...string) {
	for name, target := range map[string]string{"job": "job", "set": "jobset", "torch": "pytorchjob"} {
		p.job(name, append([]string{
			"target: " + target, "failure: {restarts: 0}",
			fmt.Sprintf("placement: {nodeSelector: {tegen.dev/lab: %s}}", p.namespace),
		}, fields...)...)
	}
}

// addNode has one of the nodes be what the jobs wait for.
func (p *place) addNode() {
	p.Helper()
	node := map[string]string{"Flux": "node-0", "Argo CD": "node-1"}[p.Name()]
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tegen.dev/lab":%q}}}`, p.namespace)
	if _, err := p.client.CoreV1().Nodes().Patch(p.Context(), node, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
}

// seen has the reconciler look now, and waits until a user sees the health.
func (p *place) seen(argo, flux string) {
	p.Helper()
	if err := p.Ask(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.health(map[string]string{"Argo CD": argo, "Flux": flux})
}

// waits: why --wait leaves Jobs out. Flux asks no expression of a Job, and waits for the end of training.
func (p *place) waits() {
	p.Helper()
	if _, err := p.lab.Dynamic().Resource(schema.GroupVersionResource{
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations",
	}).Namespace("flux-system").Patch(p.Context(), p.app.Name, types.MergePatchType, []byte(`{"spec":{"wait":true}}`),
		metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
	p.health(map[string]string{"Flux": "Progressing"})
}
