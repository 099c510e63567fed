package gitops

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
)

// TestPatches builds a folder with the patches in its kustomization, as Flux does (fluxcd/pkg, kustomize).
func TestPatches(t *testing.T) {
	const objects = `apiVersion: batch/v1
kind: Job
metadata: {name: queued, labels: {kueue.x-k8s.io/queue-name: research}, annotations: {a: b}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: resnet, labels: {a: b}}
---
apiVersion: v1
kind: Service
metadata: {name: resnet}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: resnet}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: resnet}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bert, labels: {kueue.x-k8s.io/queue-name: research}}
`
	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"all.yaml"}, "patches": patches()})
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"all.yaml": objects, kustomizationFile: string(kustomization)} {
		if err := disk.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, ".")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range built.Resources() {
		var words []string
		for _, key := range []string{"substitute", "force", "ssa"} {
			if value, ok := r.GetAnnotations()["kustomize.toolkit.fluxcd.io/"+key]; ok {
				words = append(words, key+"="+value)
			}
		}
		got[r.GetKind()+" "+r.GetName()] = strings.Join(words, " ")
	}
	for object, want := range map[string]string{
		"Job queued":                   "substitute=disabled ssa=IfNotPresent",
		"Job resnet":                   "substitute=disabled",
		"Service resnet":               "substitute=disabled force=enabled",
		"PersistentVolumeClaim resnet": "substitute=disabled", // with force its data would go
		"StatefulSet resnet":           "substitute=disabled",
		"JobSet bert":                  "substitute=disabled ssa=IfNotPresent",
	} {
		if got[object] != want {
			t.Errorf("%s has %q, want %q", object, got[object], want)
		}
	}
}

// TestWait: Flux waits where every object comes to an end of it.
func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds []schema.GroupKind
		wait  bool
		why   string
	}{
		"JobSet":     {[]schema.GroupKind{{Kind: "Service"}, apis.JobSetKind.GroupKind()}, true, ""},
		"Job":        {[]schema.GroupKind{{Group: "batch", Kind: "Job"}}, false, "waits for a Job to end"},
		"pods":       {[]schema.GroupKind{{Kind: "Pod"}}, false, "longer than 15 seconds"},
		"claim":      {[]schema.GroupKind{{Kind: "PersistentVolumeClaim"}}, false, "first pod"},
		"VolcanoJob": {[]schema.GroupKind{apis.VCJobKind.GroupKind()}, true, ""}, // is no Job of batch
	} {
		t.Run(name, func(t *testing.T) {
			folder := Folder{Name: "a", Objects: of("", tc.kinds...)}
			objects, notes := Kustomizations(flux(func(f *Flux) { f.Wait = true }), []Folder{folder})
			spec := objects[1].(*apis.Custom[kustomizationSpec]).Spec
			if spec.Wait != tc.wait || tc.wait != (len(spec.HealthCheckExprs) == 1) {
				t.Errorf("wait is %t, with %v", spec.Wait, spec.HealthCheckExprs)
			}
			if got := strings.Join(notes, " "); !strings.Contains(got, tc.why) || tc.wait != (got == "") {
				t.Errorf("notes %q", got)
			}
			objects, _ = Kustomizations(flux(nil), []Folder{folder})
			if spec := objects[1].(*apis.Custom[kustomizationSpec]).Spec; spec.Wait || spec.HealthCheckExprs != nil {
				t.Error("Flux waits though nobody asked for it")
			}
		})
	}
}

// of are objects of these kinds.
func of(namespace string, kinds ...schema.GroupKind) (all []Object) {
	for _, k := range kinds {
		all = append(all, Object{GroupKind: k, Namespace: namespace, Name: "a"})
	}
	return all
}

func TestFluxNotes(t *testing.T) {
	account, pod := schema.GroupKind{Kind: "ServiceAccount"}, schema.GroupKind{Kind: "Pod"}
	runtimes, trainJob := apis.TrainingRuntimeKind.GroupKind(), apis.TrainJobKind.GroupKind()
	notes := strings.Join(flux(nil).notes([]Folder{
		{Name: "a", Objects: of("ml", account, pod)},
		{Name: "b", Objects: of("nlp", runtimes, trainJob)},
	}), "\n")
	for _, want := range []string{
		"create ml, nlp first", "--custom-apply-stage-kinds=/ServiceAccount,trainer.kubeflow.org/TrainingRuntime",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in:\n%s", want, notes)
		}
	}
	notes = strings.Join(flux(nil).notes([]Folder{
		{Name: "a", Objects: of("ml", account, schema.GroupKind{Kind: "Namespace"})},
		{Name: "b", Objects: of("", pod)},
	}), "\n")
	if notes != "" {
		t.Errorf("there is no need for:\n%s", notes)
	}
}

// TestFluxSource: what --revision names is told apart.
func TestFluxSource(t *testing.T) {
	sha := strings.Repeat("0a", 20)
	for revision, want := range map[string]string{
		"": "branch: main", "release/1": "branch: release/1", "refs/tags/v1": "name: refs/tags/v1",
		"refs/heads/v1": "name: refs/heads/v1", sha: "commit: " + sha,
	} {
		object, _ := flux(func(f *Flux) { f.Revision = revision }).source()
		text, err := manifest.Append(nil, object)
		if err != nil || !strings.Contains(string(text), "  ref:\n    "+want) {
			t.Errorf("of %q: %v, not %s:\n%s", revision, err, want, text)
		}
	}
	for text, want := range map[string]string{
		"eks": "tag: eks", "sha256:" + sha + sha[:24]: "digest: sha256:" + sha + sha[:24],
	} {
		object, _ := flux(func(f *Flux) {
			f.Source = Source{URL: "oci://registry.example/team/jobs", Revision: text}
		}).source()
		text, err := manifest.Append(nil, object)
		if err != nil || !strings.Contains(string(text), "  ref:\n    "+want+"\n") {
			t.Errorf("%v, not %s:\n%s", err, want, text)
		}
	}
}

// TestLogin: what Flux logs in with is named, where it can log in with that.
func TestLogin(t *testing.T) {
	ssh := func(f *Flux) { f.URL = "ssh://git@git.example/team/jobs" }
	oci := func(f *Flux) { f.URL = "oci://registry.example/team/jobs:eks" }
	for _, tc := range []struct {
		name, want string // the error, or what is rendered
		edit       func(*Flux)
		refused    bool
	}{
		{"token", "\n  secretRef:\n    name: login\n", func(f *Flux) { f.SecretRef = "login" }, false},
		{"key", "\n  secretRef:\n    name: login\n", func(f *Flux) { ssh(f); f.SecretRef = "login" }, false},
		{"pull secret", "\n  secretRef:\n    name: login\n", func(f *Flux) { oci(f); f.SecretRef = "login" }, false},
		{"cloud's registry", "\n  provider: gcp\n", func(f *Flux) { oci(f); f.Provider = "gcp" }, false},
		{"cloud's git", "\n  provider: azure\n", func(f *Flux) { f.Provider = "azure" }, false},
		{"app", "\n  provider: github\n", func(f *Flux) { f.Provider, f.SecretRef = "github", "app" }, false},
		{"plain HTTP", "\n  insecure: true\n", func(f *Flux) { oci(f); f.Insecure = true }, false},
		{"no key", "--repo: Flux reads ssh:// by a key alone: make its Secret with 'flux create secret git " +
			"jobs-login --url=ssh://git@git.example/team/jobs', and add --secret-ref jobs-login", ssh, true},
		{"a token itself", "no secret itself", func(f *Flux) { f.SecretRef = "ghp_S3cret" }, true},
		{"no registry", "--provider: must be one of aws, azure, gcp for oci://, not", func(f *Flux) {
			oci(f)
			f.Provider = "github"
		}, true},
		{"no git", "--provider: must be one of aws, azure, github for a git repository", func(f *Flux) {
			f.Provider = "gcp"
		}, true},
		{"no app", "--provider: github needs the Secret", func(f *Flux) { f.Provider = "github" }, true},
		{"two logins", "leave out --provider or --secret-ref", func(f *Flux) {
			oci(f)
			f.Provider, f.SecretRef = "aws", "login"
		}, true},
		{"plain git", "--insecure: is for oci://", func(f *Flux) { f.Insecure = true }, true},
		{"file", "reads no files of this machine", func(f *Flux) { f.URL = "file:///srv/jobs" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := flux(tc.edit)
			err := f.Check()
			if tc.refused {
				if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "S3cret") {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			object, _ := f.source()
			text, missing := manifest.Append(nil, object)
			if err != nil || missing != nil || !strings.Contains(string(text), tc.want) {
				t.Errorf("%v, %v, want %q in:\n%s", err, missing, tc.want, text)
			}
		})
	}
}
