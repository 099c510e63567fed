package gitops

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/test/upstream"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	jobSets     = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	volcanoJobs = schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
)

// kueue: what Kueue writes of a Job, played by hand, is neither taken back nor in the way of the next commit.
func kueue(p *place) {
	queue, gpu := "gang: {scheduler: kueue, queue: team-a}", "placement: {tolerations: [{key: gpu, operator: Exists}]}"
	p.job("resnet", queue, gpu)
	p.commit("Train resnet")
	p.generated()
	p.followed()
	p.patchJob(`{"spec":{"suspend":true}}`) // its webhook does so before the Job is stored
	p.running(0)
	p.patchJob(`{"spec":{"suspend":false,"template":{"spec":{"tolerations":[` +
		`{"key":"gpu","operator":"Exists"},{"key":"spot","operator":"Exists"}]}}}}`)
	p.running(2)
	p.job("bert", queue, gpu)
	p.commit("Train bert")
	p.synced()
	p.queued("resnet")
	p.running(4)
	if p.Name() == "Flux" { // which knows no other way to apply
		return
	}
	p.serverSide()
	p.job("gpt", queue, gpu)
	p.commit("Train gpt")
	p.synced()
	p.queued("resnet")
	p.running(6)
}

// serverSide has Argo CD apply what follows on the server's side, with all that was generated.
func (p *place) serverSide() {
	p.Helper()
	policy, _ := p.app.Options.Argo["syncPolicy"].(map[string]any)
	options, _ := policy["syncOptions"].([]any)
	policy["syncOptions"] = append(options, "ServerSideApply=true")
	if err := p.Follow(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
}

// queued checks that a job has what Kueue wrote.
func (p *place) queued(name string) {
	p.Helper()
	jobs, err := p.client.BatchV1().Jobs(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	for _, job := range jobs.Items {
		tolerations := job.Spec.Template.Spec.Tolerations
		if strings.HasPrefix(job.Name, name) && (*job.Spec.Suspend || len(tolerations) != 2) {
			p.Errorf("Kueue's writes were taken back: suspend %v, tolerations %v", *job.Spec.Suspend, tolerations)
		}
	}
}

// alone is held by the case that takes a CRD away from all.
var alone sync.Mutex

// laterCRD: what is of a kind that the cluster does not know yet follows once it does.
func laterCRD(p *place) {
	alone.Lock()
	p.Cleanup(alone.Unlock) // when the CRD is gone again
	crd := p.crd("batch.volcano.sh_jobs.yaml")
	client := p.lab.Dynamic().Resource(definitions)
	p.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := client.Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			p.Error(err)
		}
		p.eventually("the CRD to go", func() error {
			_, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.New("it is still there")
		})
	})
	p.job("resnet", "target: vcjob")
	p.commit("Train resnet as a Job of Volcano")
	if status := p.follow(); status.Synced {
		p.Errorf("nobody serves Volcano's Jobs, and the cluster is at the commit: %s", status)
	}
	if _, err := client.Create(p.Context(), crd, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.eventually("the Job of Volcano", func() error {
		jobs, err := p.lab.Dynamic().Resource(volcanoJobs).Namespace(p.namespace).List(p.Context(),
			metav1.ListOptions{})
		if err == nil && len(jobs.Items) != 1 {
			err = fmt.Errorf("there are %d", len(jobs.Items))
		}
		return err
	})
	p.eventually("the commit", func() error {
		if status, err := p.Status(p.Context(), p.app); err != nil || !status.Synced {
			return fmt.Errorf("%s (%w)", status, err)
		}
		return nil
	})
}

// crd is a definition of another project, by the end of its file's name.
func (p *place) crd(name string) *unstructured.Unstructured {
	p.Helper()
	files, absent := upstream.Files("../../..")
	i := slices.IndexFunc(files, func(file string) bool { return strings.HasSuffix(file, name) })
	if i < 0 && absent != nil {
		upstream.Absent(p.T, absent)
	}
	if i < 0 {
		p.Fatalf("%s is not among %v", name, files)
	}
	text, err := os.ReadFile(files[i])
	if err != nil {
		p.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		p.Fatal(err)
	}
	return crd
}

// laterNamespace: a sync that found no namespace is tried again.
func laterNamespace(p *place) {
	p.drop()
	p.job("resnet")
	p.commit("Train resnet")
	if status := p.follow(); status.Synced || !strings.Contains(status.Message, "not found") {
		p.Errorf("there is no namespace, and %s does not say so: %s", p.Name(), status)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	if _, err := p.client.CoreV1().Namespaces().Create(p.Context(), namespace, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.running(2)
}

// ownNamespace: with createNamespace the bundle brings it.
func ownNamespace(p *place) {
	p.drop()
	p.job("resnet", "createNamespace: true")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
}

// drop deletes the namespace that every case has.
func (p *place) drop() {
	p.Helper()
	namespaces := p.client.CoreV1().Namespaces()
	if err := namespaces.Delete(p.Context(), p.namespace, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	p.eventually("the namespace to go", func() error {
		_, err := namespaces.Get(p.Context(), p.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("it is still there")
	})
}
