package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// plugin: Argo CD renders the files of jobs itself, by the plugin.yaml of the image and through an overlay. A mistake
// in one is shown in its Application as tegen says it, deletes nothing and stops no other.
func plugin(p *place) {
	p.job("resnet")
	p.source("Train resnet")
	t := p.generate("plugin", "--plugin", "--overlay", "overlays/lab")
	p.applications("plugin-", "plugin-resnet")
	resnet := t.of("resnet")
	resnet.synced()
	p.running(2)
	if got := p.theJob().Spec.Template.Spec.Containers[0].ImagePullPolicy; got != corev1.PullNever {
		p.Errorf("the image is pulled %s, against what the overlay says", got)
	}

	p.job("resnet", "workers: {replicas: two}")
	p.job("bert")
	p.source("Train resnet on two nodes, and bert")
	resnet.says(`exit status 1: jobs/resnet.yaml:8:23: spec.workers.replicas: must be an integer from 1 to 4096, ` +
		`not "two"`)
	t.look()
	p.applications("plugin-", "plugin-bert", "plugin-resnet")
	t.of("bert").synced()
	p.running(4)
	p.job("resnet", "workers: {replicas: 3}")
	p.source("Train resnet on three nodes")
	resnet.mended()
	p.running(5)
}

// applications are those whose names begin so.
func (p *place) applications(prefix string, want ...string) {
	p.Helper()
	p.eventually(fmt.Sprintf("the Applications %v", want), func() error {
		all, err := p.lab.Dynamic().Resource(schema.GroupVersionResource{
			Group: "argoproj.io", Version: "v1alpha1", Resource: "applications",
		}).Namespace("argocd").List(p.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, o := range all.Items {
			if strings.HasPrefix(o.GetName(), prefix) {
				got = append(got, o.GetName())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
}

// overlay is one that a plugin renders through.
var overlay = map[string]string{
	"kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [environment.yaml]
transformers: [tegen.yaml]
`,
	"environment.yaml": `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: lab}
spec: {overrides: {imagePullPolicy: Never}}
`,
	"tegen.yaml": `apiVersion: tegen.dev/v1alpha1
kind: Generator
metadata:
  name: tegen
  annotations:
    config.kubernetes.io/function: |
      exec: {path: tegen, args: [fn]}
spec: {environment: lab}
`,
}

// source commits jobs that nobody rendered, and the overlay.
func (p *place) source(message string) {
	p.Helper()
	files := map[string]string{ // in a folder below, which nobody asked for
		"jobs/old/gpt.yaml": strings.ReplaceAll(p.jobs["resnet"], "name: resnet", "name: gpt"),
	}
	for name, text := range p.jobs {
		files["jobs/"+name+".yaml"] = text
	}
	for name, text := range overlay {
		files["overlays/lab/"+name] = text
	}
	for name, text := range files {
		file := filepath.Join(p.app.Repository.Dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	if err := p.app.Repository.Commit(p.Context(), message); err != nil {
		p.Fatal(err)
	}
}
