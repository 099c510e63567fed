package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tegen-dev/tegen/test/gitops"
)

const (
	// patience is for one thing that happens within seconds, on a machine that also compiles.
	patience = 2 * time.Minute
	poll     = 250 * time.Millisecond
)

// place is where one case is tried with one reconciler: a repository, a namespace, and what follows the one into the
// other.
type place struct {
	*testing.T
	gitops.Reconciler
	lab       *gitops.Lab
	client    kubernetes.Interface
	tegen     string
	app       gitops.App
	namespace string
	jobs      map[string]string // what is in git, by name
}

// newPlace makes repository and namespace. Nothing follows the repository yet.
func newPlace(t *testing.T, lab *gitops.Lab, r gitops.Reconciler, tegen, row string) *place {
	t.Helper()
	slug := regexp.MustCompile(`[^a-z0-9]+`)
	name := strings.Trim(slug.ReplaceAllString(strings.ToLower(row+"-"+r.Name()), "-"), "-")
	if len(name) > 60 {
		t.Fatalf("%q is too long for a namespace", name)
	}
	repository, err := lab.Git.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{
		T: t, Reconciler: r, lab: lab, client: lab.Client(), tegen: tegen, namespace: name, jobs: map[string]string{},
		app: gitops.App{Name: name, Repository: repository, Path: "rendered"},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// job puts a job into the repository, with fields in place of those that every job here has. commit renders it.
func (p *place) job(name string, fields ...string) {
	all := []string{
		"gitops: true", "image: registry.example/resnet:1.0", "command: [python, train.py]",
		"workers: {replicas: 2}", "resources: {cpu: 1, memory: 1Gi}",
	}
	for _, field := range fields {
		key, _, _ := strings.Cut(field, ":")
		i := slices.IndexFunc(all, func(other string) bool { return strings.HasPrefix(other, key+":") })
		if i < 0 {
			all = append(all, field)
		} else {
			all[i] = field
		}
	}
	p.jobs[name] = fmt.Sprintf(`apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: %s, namespace: %s}
spec:
  %s
`, name, p.namespace, strings.Join(all, "\n  "))
}

// commit renders the jobs as a person would, and pushes what came out. Folders of jobs that are gone go.
func (p *place) commit(message string) {
	p.Helper()
	dir := p.app.Repository.Dir
	for _, folder := range []string{"jobs", p.app.Path} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			p.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "jobs"), 0o755); err != nil {
		p.Fatal(err)
	}
	args := []string{"render", "-o", filepath.Join(dir, p.app.Path)}
	for name, text := range p.jobs {
		file := filepath.Join(dir, "jobs", name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
		args = append(args, file)
	}
	command(p.T, p.tegen, args...)
	if err := p.app.Repository.Commit(p.Context(), message); err != nil {
		p.Fatal(err)
	}
}

// follow has the reconciler follow the repository, and sync.
func (p *place) follow() gitops.Status {
	p.Helper()
	if err := p.Follow(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(p.leave)
	return p.sync()
}

// followed is follow, and the cluster is at the commit.
func (p *place) followed() {
	p.Helper()
	if status := p.follow(); !status.Synced {
		p.Fatalf("the first sync: %s", status)
	}
}

// leave stops what follows the repository, so that the cases that are left have the machine for themselves.
func (p *place) leave() {
	ctx, cancel := cleanupContext()
	defer cancel()
	if p.Failed() {
		p.report(ctx)
	}
	if err := p.Remove(ctx, p.app); err != nil {
		p.Error(err)
	}
	err := p.client.CoreV1().Namespaces().Delete(ctx, p.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.Error(err)
	}
}

// report logs what became of the pods of a case that failed.
func (p *place) report(ctx context.Context) {
	pods, err := p.client.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		p.Error(err)
		return
	}
	for _, pod := range pods.Items {
		p.Logf("pod %s is %s on node %q: %v", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Status.Conditions)
	}
}

// sync has it look at git and returns what a user then sees.
func (p *place) sync() gitops.Status {
	p.Helper()
	begin := time.Now()
	status, err := p.Sync(p.Context(), p.app)
	if err != nil {
		p.Fatal(err)
	}
	p.Logf("after %.1f s: %s", time.Since(begin).Seconds(), status)
	return status
}

// synced is sync, and the cluster is at the commit.
func (p *place) synced() gitops.Status {
	p.Helper()
	status := p.sync()
	if !status.Synced {
		p.Fatalf("the cluster is not at the commit: %s", status)
	}
	return status
}

// eventually waits until check has no complaint.
func (p *place) eventually(what string, check func() error) {
	p.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("waiting for %s: not within %v: %v", what, patience, err)
		}
		time.Sleep(poll)
	}
}
