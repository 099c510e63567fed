package gitops

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/cluster"
)

var pyTorchJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

func jobSet(p *place)     { operated(p, "jobset", jobSets, "Completed") }
func pyTorchJob(p *place) { operated(p, "pytorchjob", pyTorchJobs, "Succeeded") }

// operated: what the controller of a custom resource writes of it, and what its webhook adds when it is made, is no
// difference to git, whichever way objects are applied; and its states are seen.
func operated(p *place, target string, kind schema.GroupVersionResource, done string) {
	p.job("resnet", "target: "+target, "suspend: true")
	p.commit("Queue resnet")
	p.followed()
	p.eventually("the controller's word", func() error { return says(p.the(kind), "Suspended") })
	p.health(map[string]string{"Argo CD": "Suspended", "Flux": "ReconciliationSucceeded"})
	p.job("resnet", "target: "+target)
	p.commit("Train resnet")
	p.synced()
	p.running(2)
	p.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
	p.undisturbed()
	p.end(cluster.OutcomeSucceeded)
	p.eventually("the end", func() error { return says(p.the(kind), done) })
	p.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
	before := p.the(kind)
	p.commit("Say something elsewhere")
	p.synced()
	if after := p.the(kind); after.GetUID() != before.GetUID() {
		p.Errorf("the training runs again")
	}
}

// the is the one object of a kind in the namespace.
func (p *place) the(kind schema.GroupVersionResource) *unstructured.Unstructured {
	p.Helper()
	all, err := p.lab.Dynamic().Resource(kind).Namespace(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if len(all.Items) != 1 {
		p.Fatalf("there are %d %s", len(all.Items), kind.Resource)
	}
	return &all.Items[0]
}

// says checks that a condition is True.
func says(o *unstructured.Unstructured, word string) error {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range conditions {
		if c, ok := entry.(map[string]any); ok && c["type"] == word && c["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("it has %v", conditions)
}
