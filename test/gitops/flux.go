package gitops

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/ports"
)

const fluxNamespace = "flux-system"

var (
	gitRepositories = schema.GroupVersionResource{
		Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories",
	}
	ociRepositories = schema.GroupVersionResource{
		Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories",
	}
	kustomizations = schema.GroupVersionResource{
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations",
	}
)

// Flux is source-controller, which pulls, and kustomize-controller, which applies.
type Flux struct {
	c         *cluster.Cluster
	audit     string
	processes map[string]*cluster.Process
}

func startFlux(ctx context.Context, c *cluster.Cluster, audit string) (*Flux, error) {
	f := &Flux{c: c, audit: audit, processes: map[string]*cluster.Process{}}
	for _, program := range []string{cluster.SourceController, cluster.KustomizeController} {
		if err := c.ApplyCRDs(ctx, program, "config/crd/bases/*.yaml"); err != nil {
			return nil, err
		}
	}
	artifacts := filepath.Join(c.Dir(), "flux-artifacts")
	if err := os.Mkdir(artifacts, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of artifacts: %w", err)
	}
	free, err := ports.Free(5)
	if err != nil {
		return nil, err
	}
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", free[i]) }
	if err := f.run(ctx, cluster.SourceController, address(0), "--metrics-addr="+address(1),
		"--storage-path="+artifacts, "--storage-addr="+address(2),
		"--storage-adv-addr="+address(2)); err != nil {
		return nil, err
	}
	return f, f.run(ctx, cluster.KustomizeController, address(3), "--metrics-addr="+address(4))
}

func (f *Flux) run(ctx context.Context, name, health string, args ...string) error {
	kubeconfig, err := f.c.Account(ctx, fluxNamespace, name)
	if err != nil {
		return fmt.Errorf("making the account of %s: %w", name, err)
	}
	program, err := cluster.Program(ctx, io.Discard, name)
	if err != nil {
		return err
	}
	env := []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=" + fluxNamespace}
	p, err := f.c.RunWith(ctx, env, name, program, append(args, "--health-addr="+health, "--events-addr=")...)
	if err != nil {
		return err
	}
	f.processes[name] = p
	return p.Ready(ctx, "http://"+health+"/readyz")
}

// Name is what docs/gitops.md calls it.
func (f *Flux) Name() string { return "Flux" }

// Follow makes a GitRepository and a Kustomization.
func (f *Flux) Follow(ctx context.Context, app App) error {
	meta := map[string]any{"name": app.Name, "namespace": fluxNamespace}
	source := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gitRepositories.GroupVersion().String(), "kind": "GitRepository", "metadata": meta,
		"spec": map[string]any{
			"url": app.Repository.URL, "interval": "1h", "ref": map[string]any{"branch": Branch},
		},
	}}
	if err := f.c.Apply(ctx, gitRepositories, source); err != nil {
		return err
	}
	spec := map[string]any{
		"sourceRef": map[string]any{"kind": "GitRepository", "name": app.Name},
		"path":      "./" + app.Path, "interval": "1h", "retryInterval": "10s", "prune": true, "wait": false,
	}
	maps.Copy(spec, app.Options.Flux)
	return f.c.Apply(ctx, kustomizations, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kustomizations.GroupVersion().String(), "kind": "Kustomization", "metadata": meta, "spec": spec,
	}})
}

// Ask does what flux reconcile kustomization --with-source does, and does not wait for its end.
func (f *Flux) Ask(ctx context.Context, app App) error {
	_, err := f.ask(ctx, app)
	return err
}

func (f *Flux) ask(ctx context.Context, app App) (token string, err error) {
	source, name := gitRepositories, cmp.Or(app.Source, app.Name)
	if app.Artifact != "" {
		source = ociRepositories
	}
	if token, err = f.request(ctx, source, name); err != nil {
		return "", err
	}
	if err := f.done(ctx, source, name, token); err != nil {
		return "", err
	}
	return f.request(ctx, kustomizations, app.Name)
}

// Sync is Ask, and waits.
func (f *Flux) Sync(ctx context.Context, app App) (Status, error) {
	token, err := f.ask(ctx, app)
	if err != nil {
		return Status{}, err
	}
	if err := f.done(ctx, kustomizations, app.Name, token); err != nil {
		return Status{}, err
	}
	s, err := f.Status(ctx, app)
	if err == nil && !strings.HasSuffix(s.Revision, app.head()) {
		err = fmt.Errorf("the Kustomization %s was reconciled at %s, not at %s", app.Name, s.Revision, app.head())
	}
	return s, err
}

// request asks for an object to be looked at now.
func (f *Flux) request(ctx context.Context, gvr schema.GroupVersionResource, name string) (token string, err error) {
	token = time.Now().Format(time.RFC3339Nano)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, token)
	_, err = f.c.Dynamic().Resource(gvr).Namespace(fluxNamespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return token, err
}

// done waits until what was asked for is done.
func (f *Flux) done(ctx context.Context, gvr schema.GroupVersionResource, name, token string) error {
	return eventually(ctx, gvr.Resource+" "+name, func() error {
		o, err := f.c.Dynamic().Resource(gvr).Namespace(fluxNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, reason, message := conditionOf(o, "Ready")
		if field(o, "status", "lastHandledReconcileAt") != token || status == "" || status == "Unknown" {
			return fmt.Errorf("its condition Ready is %s (%s: %s): %w", status, reason, message, errNotYet)
		}
		return nil
	})
}

// Status is the Kustomization's condition Ready, and that it waits for pods, with which Ready stays what it was.
func (f *Flux) Status(ctx context.Context, app App) (Status, error) {
	o, err := f.c.Dynamic().Resource(kustomizations).Namespace(fluxNamespace).Get(ctx, app.Name, metav1.GetOptions{})
	if err != nil {
		return Status{}, err
	}
	ready, reason, message := conditionOf(o, "Ready")
	if healthy, why, _ := conditionOf(o, "Healthy"); healthy == "Unknown" {
		reason = why
	}
	return Status{
		Revision: field(o, "status", "lastAttemptedRevision"), Synced: ready == "True", Health: reason,
		Message: message,
	}, nil
}

// Remove deletes the Kustomization, which prunes what it applied, and the GitRepository.
func (f *Flux) Remove(ctx context.Context, app App) error {
	for _, gvr := range []schema.GroupVersionResource{kustomizations, gitRepositories} {
		if err := remove(ctx, f.c, gvr, fluxNamespace, app.Name); err != nil {
			return err
		}
	}
	return nil
}

// Requests are those of both controllers.
func (f *Flux) Requests() (Requests, error) { return requestsOf(f.audit, fluxNamespace+":") }

// Memory is that of both controllers.
func (f *Flux) Memory() (map[string]int, error) { return memory(f.processes) }
