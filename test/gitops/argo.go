package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
)

const (
	argoNamespace = "argocd"
	// stable is how long an Application must look the same to be thought at rest where it does not say so itself: it
	// compares again a moment after a sync.
	stable = 4 * time.Second
)

var (
	applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	appProjects  = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"}

	applicationSets = schema.GroupVersionResource{
		Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets",
	}
)

// Argo is Argo CD without its web server.
type Argo struct {
	c         *cluster.Cluster
	audit     string
	home      string
	processes map[string]*cluster.Process
}

// configure makes what an installation of Argo CD holds besides its programs.
func (a *Argo) configure(ctx context.Context) error {
	for _, dir := range []string{"tls", "ssh", pluginSockets} {
		if err := os.MkdirAll(filepath.Join(a.home, dir), 0o700); err != nil {
			return err
		}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: argoNamespace, Labels: map[string]string{"app.kubernetes.io/part-of": "argocd"},
		}
	}
	core := a.c.Client().CoreV1()
	for _, name := range []string{"argocd-cm", "argocd-rbac-cm"} {
		if _, err := core.ConfigMaps(argoNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(name)},
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if _, err := core.Secrets(argoNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: meta("argocd-secret"), StringData: map[string]string{"server.secretkey": "of the lab"},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	all := []any{"*"}
	return a.c.Apply(ctx, appProjects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": appProjects.GroupVersion().String(), "kind": "AppProject",
		"metadata": map[string]any{"name": "default", "namespace": argoNamespace},
		"spec": map[string]any{
			"sourceRepos":              all,
			"destinations":             []any{map[string]any{"namespace": "*", "server": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		},
	}})
}

// Name is what docs/gitops.md calls it.
func (a *Argo) Name() string { return "Argo CD" }

// Follow makes an Application that takes what it applied along when it is deleted.
func (a *Argo) Follow(ctx context.Context, app App) error {
	options := []any{fmt.Sprintf("ServerSideApply=%v", app.Options.ServerSideApply)}
	spec := map[string]any{
		"project":     "default",
		"destination": map[string]any{"server": "https://kubernetes.default.svc"},
		"source": map[string]any{
			"repoURL": app.Repository.URL, "path": app.Path, "targetRevision": Branch,
			"directory": map[string]any{"recurse": true, "exclude": "{kustomization.yaml,*/kustomization.yaml}"},
		},
		"syncPolicy": map[string]any{
			"automated":   map[string]any{"prune": true, "selfHeal": true},
			"syncOptions": options,
			"retry": map[string]any{
				"limit": int64(-1), "refresh": true,
				"backoff": map[string]any{"duration": "10s", "factor": int64(2), "maxDuration": "2m"},
			},
		},
	}
	maps.Copy(spec, app.Options.Argo)
	return a.c.Apply(ctx, applications, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": applications.GroupVersion().String(), "kind": "Application",
		"metadata": map[string]any{
			"name": app.Name, "namespace": argoNamespace,
			"finalizers": []any{"resources-finalizer.argocd.argoproj.io"},
		},
		"spec": spec,
	}})
}

// Ask does what argocd app get --refresh does.
func (a *Argo) Ask(ctx context.Context, app App) error {
	patch := `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`
	_, err := a.c.Dynamic().Resource(applications).Namespace(argoNamespace).Patch(ctx, app.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// Sync is Ask, and waits for what automated sync then does.
func (a *Argo) Sync(ctx context.Context, app App) (Status, error) {
	if err := a.Ask(ctx, app); err != nil {
		return Status{}, err
	}
	client := a.c.Dynamic().Resource(applications).Namespace(argoNamespace)
	var last Status
	since, askedAgain := time.Now(), false
	err := eventually(ctx, "Application "+app.Name, func() error {
		o, err := client.Get(ctx, app.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := applicationStatus(o)
		if s != last {
			last, since = s, time.Now()
		}
		if err := unsettled(o, app.head()); err != nil {
			if errors.Is(err, errSameSecond) && !askedAgain {
				askedAgain = true
				if err := a.Ask(ctx, app); err != nil {
					return err
				}
			}
			return fmt.Errorf("%w (%s)", err, s)
		}
		if time.Since(since) < stable {
			return fmt.Errorf("changed %v ago (%s): %w", time.Since(since).Round(time.Second), s, errNotYet)
		}
		return nil
	})
	return last, err
}

// unsettled says what Argo CD is still about to do for a commit.
func unsettled(o *unstructured.Unstructured, head string) error {
	_, refreshing := o.GetAnnotations()["argocd.argoproj.io/refresh"]
	_, asked := o.Object["operation"]
	phase, message := field(o, "status", "operationState", "phase"), field(o, "status", "operationState", "message")
	synced := field(o, "status", "sync", "status")
	switch {
	case refreshing, asked && phase != "Running":
		return fmt.Errorf("it is looked at: %w", errNotYet)
	case synced == "Unknown": // the folder could not be read: a condition says why
		return nil
	case field(o, "status", "sync", "revision") != head:
		return fmt.Errorf("it was compared with another commit: %w", errNotYet)
	case phase == "Running" && !strings.Contains(message, "Retrying attempt"), phase == "Terminating":
		return fmt.Errorf("a sync is under way: %w", errNotYet)
	case synced == "OutOfSync" && field(o, "status", "operationState", "syncResult", "revision") != head:
		return fmt.Errorf("a sync is about to begin: %w", errNotYet)
	case synced == "OutOfSync" && phase == "Succeeded":
		return compared(o)
	}
	return nil
}

// errSameSecond: the comparison and the end of the sync have the same time, in seconds, and either may be the first.
var errSameSecond = fmt.Errorf("it was compared with git in the second of the sync's end: %w", errNotYet)

// compared says whether the cluster was compared with git after the last sync.
func compared(o *unstructured.Unstructured) error {
	at, err := time.Parse(time.RFC3339, field(o, "status", "reconciledAt"))
	if err != nil {
		return fmt.Errorf("it is not compared with git yet: %w", errNotYet)
	}
	end, err := time.Parse(time.RFC3339, field(o, "status", "operationState", "finishedAt"))
	switch {
	case err != nil, at.Before(end):
		return fmt.Errorf("what it applied is not compared with git yet: %w", errNotYet)
	case at.Equal(end):
		return errSameSecond
	}
	return nil
}

// Status is what the web page says of the Application.
func (a *Argo) Status(ctx context.Context, app App) (Status, error) {
	o, err := a.c.Dynamic().Resource(applications).Namespace(argoNamespace).Get(ctx, app.Name, metav1.GetOptions{})
	if err != nil {
		return Status{}, err
	}
	return applicationStatus(o), nil
}

func applicationStatus(o *unstructured.Unstructured) Status {
	s := Status{
		Revision: field(o, "status", "sync", "revision"),
		Synced:   field(o, "status", "sync", "status") == "Synced",
		Health:   field(o, "status", "health", "status"),
	}
	parts := []string{
		field(o, "status", "sync", "status"),
		field(o, "status", "operationState", "phase") + ": " + field(o, "status", "operationState", "message"),
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range conditions {
		if c, ok := entry.(map[string]any); ok {
			parts = append(parts, fmt.Sprintf("%s: %s", c["type"], c["message"]))
		}
	}
	resources, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
	for _, entry := range resources {
		if r, ok := entry.(map[string]any); ok && r["status"] == "OutOfSync" {
			parts = append(parts, fmt.Sprintf("%s %s is OutOfSync", r["kind"], r["name"]))
		}
	}
	results, _, _ := unstructured.NestedSlice(o.Object, "status", "operationState", "syncResult", "resources")
	for _, entry := range results {
		if r, ok := entry.(map[string]any); ok && r["status"] == "SyncFailed" {
			parts = append(parts, fmt.Sprintf("%s %s: %s", r["kind"], r["name"], r["message"]))
		}
	}
	s.Message = strings.Join(parts, "; ")
	return s
}

// Remove deletes the Application with what it applied.
func (a *Argo) Remove(ctx context.Context, app App) error {
	return remove(ctx, a.c, applications, argoNamespace, app.Name)
}

// Requests are those of the application-controller.
func (a *Argo) Requests() (Requests, error) {
	return requestsOf(a.audit, argoNamespace+":"+applicationController)
}

// Memory is that of all programs.
func (a *Argo) Memory() (map[string]int, error) { return memory(a.processes) }
