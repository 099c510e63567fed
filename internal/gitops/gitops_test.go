package gitops

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/crds/celrules"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/upstream"
)

const root = "../.."

func options() Options {
	return Options{
		Source: Source{URL: "https://git.example/team/jobs", Path: "rendered/eks"},
		Name:   "eks", Namespace: "argocd", OnRemoval: Keep,
	}
}

func argocd(edit func(*ArgoCD)) ArgoCD {
	a := ArgoCD{Options: options(), Cluster: InCluster}
	if edit != nil {
		edit(&a)
	}
	return a
}

func ociArgoCD(a *ArgoCD) {
	a.Source = Source{URL: "oci://registry.example/team/jobs", Revision: "v1", Path: "."}
	a.OnRemoval, a.SelfHeal, a.Cluster, a.Project = Delete, true, "eks-prod", "training"
}

func plugin(a *ArgoCD) { a.Path, a.Plugin, a.Overlay = "jobs", true, "overlays/eks" }

func flux(edit func(*Flux)) Flux {
	f := Flux{Options: options()}
	f.Namespace = "flux-system"
	if edit != nil {
		edit(&f)
	}
	return f
}

func ociFlux(f *Flux) {
	f.Source = Source{URL: "oci://registry.example/team/jobs:eks", Path: "."}
	f.OnRemoval, f.Wait, f.SecretRef, f.Insecure = Delete, true, "jobs-login", true
}

var jobs = fstest.MapFS{
	"README.md":                 {Data: []byte("not a job\n")},
	"notes/worker.yaml":         {Data: []byte("kind: not a job either\n")},
	"resnet/kustomization.yaml": {Data: []byte("kind: Kustomization\nmetadata: {namespace: training}\n")},
	"resnet/worker.yaml": {Data: []byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: resnet, " +
		"namespace: training}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: resnet, namespace: training}\n")},
	"bert/kustomization.yaml": {Data: []byte("kind: Kustomization\nmetadata: {namespace: research}\n")},
	"bert/worker.yaml": {Data: []byte("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: bert, " +
		"namespace: research}\n")},
	"bert/storage.yaml": {Data: []byte("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: bert}\n")},
}

func folders(t *testing.T) []Folder {
	t.Helper()
	all, err := ReadTree(jobs, "rendered/eks")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rendered are the cases of the goldens.
func rendered(t *testing.T) map[string][]runtime.Object {
	all := map[string][]runtime.Object{"argocd-config": ArgoCDConfig("argocd", apis.Suspended)}
	all["argocd"], _ = ApplicationSet(argocd(nil), folders(t)[1:])
	all["argocd-oci"], _ = ApplicationSet(argocd(ociArgoCD), folders(t))
	all["argocd-plugin"], _ = ApplicationSet(argocd(plugin), nil)
	all["argocd-config-plugin"] = PluginConfig("argocd", "registry.example/tegen:1.0.0")
	all["flux"], _ = Kustomizations(flux(nil), folders(t)[1:])
	all["argocd-project"], _ = ApplicationSet(argocd(nil), granting(t))
	all["flux-account"], _ = Kustomizations(flux(account), granting(t))
	all["flux-oci-wait"], _ = Kustomizations(flux(ociFlux), folders(t))
	return all
}

func TestGolden(t *testing.T) {
	files := golden.Open(t, "testdata/golden")
	for name, objects := range rendered(t) {
		var text strings.Builder
		if err := manifest.Write(&text, objects); err != nil {
			t.Fatal(err)
		}
		files.Compare(t, name+".yaml", []byte(text.String()))
	}
	files.Orphans(t, ".")
}

// TestDefinitions holds what is rendered against the definitions of Argo CD and Flux, as an API server would.
func TestDefinitions(t *testing.T) {
	files, err := upstream.Reconcilers(root)
	absent := errors.Is(err, upstream.ErrAbsent)
	if err != nil && !absent {
		t.Fatal(err)
	}
	var evaluators []*celrules.Evaluator
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definitions, err := crds.Read(file, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range definitions {
			evaluators = append(evaluators, celrules.New(d))
		}
	}
	evaluated := 0
	for name, objects := range rendered(t) {
		for _, object := range objects {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: content}
			for _, e := range evaluators {
				if e.Kind != u.GroupVersionKind().GroupKind() {
					continue
				}
				evaluated++
				for _, finding := range e.Check(t.Context(), u) {
					if finding.Field != "status" { // a default of the definition's own
						t.Errorf("%s: %v", name, finding)
					}
				}
			}
		}
	}
	if absent {
		upstream.Absent(t, err)
	}
	if evaluated == 0 {
		t.Error("nothing was evaluated")
	}
}

func TestReadTree(t *testing.T) {
	got := folders(t)
	var names []string
	for _, f := range got {
		names = append(names, f.Name+" in "+strings.Join(namespaces([]Folder{f}), ","))
	}
	if diff := cmp.Diff([]string{"bert in research", "resnet in training"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if k := apis.JobSetKind.GroupKind(); !got[0].has(k) || got[1].has(k) {
		t.Errorf("a JobSet is in %v, not in %v", got[0], got[1])
	}
	for _, tc := range []struct {
		name, want string
		tree       fstest.MapFS
	}{
		{
			"empty", "rendered/eks holds no rendered job: make it with 'tegen render FILE... -o rendered/eks'",
			fstest.MapFS{},
		},
		{"one job", "holds no rendered job", fstest.MapFS{"kustomization.yaml": {}, "worker.yaml": {}}},
		{"broken", "rendered/eks/resnet/worker.yaml", fstest.MapFS{
			"resnet/kustomization.yaml": {}, "resnet/worker.yaml": {Data: []byte("kind: [")},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := ReadTree(tc.tree, "rendered/eks"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	service := schema.GroupKind{Kind: "Service"}
	two := []Folder{{Name: "a", Namespace: "x", Objects: slices.Concat(of("x", service), of("y", service))}}
	named := func(a *ArgoCD) { a.Project = "ml" }
	for _, tc := range []struct {
		name    string
		edit    func(*ArgoCD)
		folders []Folder
		want    []string
	}{
		{"jobs in two namespaces", named, folders(t), nil},
		{"objects in no namespace", named, []Folder{{Name: "cluster-wide"}}, nil},
		{"one job in two namespaces", named, two, []string{"of jobs alone: create y first"}},
		{"objects beside jobs", named, []Folder{
			{Name: "a", Namespace: "x", Objects: of("x", service)},
			{Name: "overlay", Objects: slices.Concat(of("x", service), of("z", service))},
		}, []string{"of jobs alone: create z first"}},
		{"own project", nil, two, []string{
			"create the namespaces x, y first: the AppProject does not permit Argo CD to do it",
			"the AppProject tegen-eks permits only the kinds and namespaces of the tree: Service in x, y. For another",
		}},
		{"own project that permits namespaces", nil, append(two, Folder{
			Name: "b", Namespace: "z", Objects: of("", schema.GroupKind{Kind: "Namespace"}),
		}), []string{
			"of jobs alone: create y first", ": Service in x, y, and cluster-scoped Namespace. For",
			"a commit can change every Namespace of the cluster",
		}},
		{"plugin", plugin, nil, []string{"in the AppProject default, which permits everything unless you changed it"}},
	} {
		_, notes := ApplicationSet(argocd(tc.edit), tc.folders)
		if len(notes) != len(tc.want) {
			t.Errorf("of %s: %q, want %q", tc.name, notes, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(notes[i], want) {
				t.Errorf("of %s: %q, want %q", tc.name, notes[i], want)
			}
		}
	}
}

// TestChecks has a mistake in each flag, and what is right beside it.
func TestChecks(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		edit       func(*ArgoCD)
	}{
		{"all right", "", nil},
		{"artifact", "", ociArgoCD},
		{"no repo", "--repo: is missing", func(a *ArgoCD) { a.URL = "" }},
		{"long name", "--name: must be", func(a *ArgoCD) { a.Name = strings.Repeat("a", 23) }},
		{"name", "--name: must be", func(a *ArgoCD) { a.Name = "EKS" }},
		{"namespace", "--namespace: must be", func(a *ArgoCD) { a.Namespace = "argo cd" }},
		{"absolute", "--path: must be a path below", func(a *ArgoCD) { a.Path = "/rendered" }},
		{"outside", "--path: must be a path below", func(a *ArgoCD) { a.Path = "../rendered" }},
		{"pattern", "--path: must be a path below", func(a *ArgoCD) { a.Path = "rendered/*" }},
		{"template", "--path: must be a path below", func(a *ArgoCD) { a.Path = "{{.x}}" }},
		{"removal", "--on-removal: must be keep or delete, not \"prune\"", func(a *ArgoCD) { a.OnRemoval = "prune" }},
		{"project", "--project: must be", func(a *ArgoCD) { a.Project = "A B" }},
		{"pattern of a repository", "as a pattern: create one", func(a *ArgoCD) { a.URL = "https://git.example/t*" }},
		{"pattern of a cluster", "as a pattern: create one", func(a *ArgoCD) { a.Cluster = "https://[fd00::1]:6443" }},
		{"pattern in no project", "", func(a *ArgoCD) { a.Cluster, a.Project = "https://[fd00::1]:6443", "ml" }},
		{"plugin", "", plugin},
		{"plugin of an artifact", "--plugin: needs a git", func(a *ArgoCD) { ociArgoCD(a); a.Plugin = true }},
		{"overlay", "--overlay: needs --plugin", func(a *ArgoCD) { a.Overlay = "overlays/eks" }},
		{"outer overlay", "--overlay: must be a path below", func(a *ArgoCD) { plugin(a); a.Overlay = "../eks" }},
		{"cluster", "--cluster: must be", func(a *ArgoCD) { a.Cluster = "http://plain" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := argocd(tc.edit).Check()
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	all := argocd(func(a *ArgoCD) { a.URL, a.Name, a.Path = "x", "", "" }).Check()
	if got := strings.Count(all.Error(), "\n") + 1; got != 3 {
		t.Errorf("%d of 3 mistakes are reported:\n%v", got, all)
	}
	if err := CheckConfig("argocd", "Paused", ""); err == nil ||
		!strings.Contains(err.Error(), "Suspended or Healthy") {
		t.Error(err)
	}
	if err := CheckConfig("argo cd", apis.Healthy, "tegen:latest"); err == nil ||
		!strings.Contains(err.Error(), "--namespace: must be") ||
		!strings.Contains(err.Error(), "--plugin-image: must be an image with a tag other than latest") {
		t.Error(err)
	}
}

// TestReadJobs: the plugin's generator makes an Application of each file, so each is one job.
func TestReadJobs(t *testing.T) {
	const job = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\n"
	for _, tc := range []struct {
		name, want string
		files      fstest.MapFS
	}{
		{"one", "", fstest.MapFS{"a.yaml": {Data: []byte(job)}, "README.md": {}, "old/b.yaml": {Data: []byte("a: b")}}},
		{"none", "jobs holds no job", fstest.MapFS{"README.md": {}}},
		{"two", "jobs/a.yaml holds 2 documents", fstest.MapFS{"a.yaml": {Data: []byte(job + "---\n" + job)}}},
		{"other", "jobs/a.yaml holds no TrainingJob", fstest.MapFS{
			"a.yaml": {Data: []byte("kind: Environment\napiVersion: a/v1\n")},
		}},
		{"no namespace", "jobs/a.yaml: metadata.namespace is missing", fstest.MapFS{
			"a.yaml": {Data: []byte("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n")},
		}},
		{"broken", "jobs/a.yaml", fstest.MapFS{"a.yaml": {Data: []byte("kind: [")}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := ReadJobs(tc.files, "jobs")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestEveryCommit: each commit is synced, whatever became of the last one. Argo CD 3.2.11 forgets one that mends a
// mistake where an annotation lets it skip commits to other folders.
func TestEveryCommit(t *testing.T) {
	for _, edit := range []func(*ArgoCD){nil, plugin, ociArgoCD} {
		objects, _ := ApplicationSet(argocd(edit), folders(t))
		meta := objects[len(objects)-1].(*apis.Custom[applicationSetSpec]).Spec.Template.Metadata
		if len(meta.Annotations) > 0 {
			t.Errorf("Applications have %v", meta.Annotations)
		}
	}
}

// TestRemoval: nobody loses a job who did not say so. Argo CD's controller adds the finalizer that deletes a job's
// objects wherever preserveResourcesOnDeletion is not set.
func TestRemoval(t *testing.T) {
	for removal, keeps := range map[OnRemoval]bool{Keep: true, Delete: false} {
		objects, _ := ApplicationSet(argocd(func(a *ArgoCD) { a.OnRemoval = removal }), folders(t))
		set := objects[len(objects)-1].(*apis.Custom[applicationSetSpec])
		if set.Spec.SyncPolicy.PreserveResourcesOnDeletion != keeps || len(set.Spec.Template.Metadata.Finalizers) > 0 {
			t.Errorf("on removal %s: %+v", removal, set.Spec.SyncPolicy)
		}
		for _, option := range set.Spec.Template.Spec.SyncPolicy.SyncOptions {
			if strings.HasPrefix(option, "Replace=") || strings.HasPrefix(option, "Force=") {
				t.Errorf("%s deletes a running job", option)
			}
		}
	}
}
