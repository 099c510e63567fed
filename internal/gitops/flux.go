package gitops

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/apis"
)

// Flux are the flags of Kustomizations.
type Flux struct {
	Options
	Wait      bool   // for pods to run, where waiting ends
	SecretRef string // name of the Secret with the login, "" for none
	Provider  string // cloud whose identity logs in, "" for none
	Insecure  bool   // the registry speaks plain HTTP

	ServiceAccount string // that applies the jobs, "" for Flux's own
}

// Check returns every mistake in the flags, a line each.
func (f Flux) Check() error {
	errs := f.check()
	if wrong := validation.IsDNS1123Subdomain(f.ServiceAccount); f.ServiceAccount != "" && len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--service-account: must be a name of lower case letters, digits, '-' and '.', "+
			"such as jobs, not %q", f.ServiceAccount))
	}
	if strings.HasPrefix(f.URL, "file://") {
		errs = append(errs, errors.New("--repo: must be https://, ssh:// or oci://: Flux runs in the cluster and "+
			"reads no files of this machine"))
	}
	return errors.Join(append(errs, f.checkLogin()...)...)
}

// Clouds whose identity of a controller Flux can log in by (source-controller v1.9.5).
var (
	gitProviders = []string{"aws", "azure", "github"}
	ociProviders = []string{"aws", "azure", "gcp"}
)

// checkLogin refuses what Flux could not log in with, as far as flags can tell.
func (f Flux) checkLogin() (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if wrong := validation.IsDNS1123Subdomain(f.SecretRef); f.SecretRef != "" && len(wrong) > 0 {
		fail("--secret-ref: must be the name of a Secret in %s, such as jobs-login, and no secret itself", f.Namespace)
	}
	providers, of := gitProviders, "a git repository"
	if f.IsOCI() {
		providers, of = ociProviders, "oci://"
	}
	switch {
	case f.Provider != "" && !slices.Contains(providers, f.Provider):
		fail("--provider: must be one of %s for %s, not %q", strings.Join(providers, ", "), of, f.Provider)
	case f.Provider == "github" && f.SecretRef == "":
		fail("--provider: github needs the Secret of a GitHub App: make it with 'flux create secret githubapp', and " +
			"add --secret-ref with its name")
	case f.Provider != "" && f.IsOCI() && f.SecretRef != "":
		fail("--provider: Flux logs in to a registry by a Secret or by a cloud's identity: leave out --provider or " +
			"--secret-ref")
	}
	if strings.HasPrefix(f.URL, sshScheme) && f.SecretRef == "" {
		fail("--repo: Flux reads %s by a key alone: make its Secret with 'flux create secret git jobs-login --url=%s'"+
			", and add --secret-ref jobs-login", sshScheme, f.URL)
	}
	if f.Insecure && !f.IsOCI() {
		fail("--insecure: is for oci://: a git repository without TLS has http:// in --repo")
	}
	return errs
}

// How often Flux looks. Each Kustomization holds one of its controller's few workers until its timeout.
const (
	sourceInterval = "1m"
	interval       = "10m" // and then drift is taken back
	retryInterval  = "30s" // a namespace or definition that comes later is worth no longer wait
	timeout        = "5m"
)

// Kustomizations returns a source, the account, if one is named, and a Kustomization for each folder; and what to tell
// the person. The options have been checked, and the tree against them.
func Kustomizations(f Flux, folders []Folder) (objects []runtime.Object, notes []string) {
	source, ref := f.source()
	objects = append(objects, source)
	if f.ServiceAccount != "" {
		objects, notes = append(objects, f.account(folders)...), f.accountNotes(folders)
	}
	for _, folder := range folders {
		object, why := f.kustomization(folder, ref)
		objects = append(objects, object)
		if why != "" {
			notes = append(notes, fmt.Sprintf("%s: wait: false, since %s", folder.Name, why))
		}
	}
	return objects, append(notes, f.notes(folders)...)
}

// source is where Flux finds the tree.
func (f Flux) source() (runtime.Object, sourceRef) {
	meta := metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace}
	revision := f.revision()
	var secret *secretRef
	if f.SecretRef != "" {
		secret = &secretRef{f.SecretRef}
	}
	if f.IsOCI() {
		ref := ociRef{Tag: revision}
		if strings.HasPrefix(revision, "sha256:") {
			ref = ociRef{Digest: revision}
		}
		spec := ociRepositorySpec{
			Interval: sourceInterval, URL: f.address(), Ref: ref, SecretRef: secret, Provider: f.Provider,
			Insecure: f.Insecure,
		}
		return apis.New(ociRepositoryKind, meta, spec), sourceRef{ociRepositoryKind.Kind, f.Name}
	}
	ref := gitRef{Branch: revision}
	switch {
	case commit().MatchString(revision):
		ref = gitRef{Commit: revision}
	case strings.HasPrefix(revision, "refs/"):
		ref = gitRef{Name: revision}
	}
	spec := gitRepositorySpec{
		Interval: sourceInterval, URL: f.URL, Ref: ref, SecretRef: secret, Provider: f.Provider,
	}
	if f.Path != "." {
		spec.SparseCheckout = []string{f.Path}
	}
	return apis.New(gitRepositoryKind, meta, spec), sourceRef{gitRepositoryKind.Kind, f.Name}
}

// kustomization is that of one folder; why says what keeps Flux from waiting, where that was asked for.
func (f Flux) kustomization(folder Folder, ref sourceRef) (object runtime.Object, why string) {
	spec := kustomizationSpec{
		Interval: interval, RetryInterval: retryInterval, Timeout: timeout,
		SourceRef:          ref,
		Path:               "./" + path.Join(f.Path, folder.Name),
		Prune:              true,
		DeletionPolicy:     "Orphan",
		ServiceAccountName: f.ServiceAccount,
		Patches:            patches(),
	}
	if f.OnRemoval == Delete {
		spec.DeletionPolicy = "Delete"
	}
	if f.Wait {
		if why = endless(folder); why == "" {
			spec.Wait, spec.HealthCheckExprs = true, expressions(folder)
		}
	}
	meta := metav1.ObjectMeta{Name: f.Name + "-" + folder.Name, Namespace: f.Namespace}
	return apis.New(kustomizationKind, meta, spec), why
}

const annotationPatch = `apiVersion: any/v1
kind: any
metadata:
  name: any
  annotations:
    %s: %s
`

// patches are what Flux has to be told of objects, by annotations.
func patches() []patch {
	annotate := func(target patchTarget, key, value string) patch {
		return patch{target, fmt.Sprintf(annotationPatch, "kustomize.toolkit.fluxcd.io/"+key, value)}
	}
	return []patch{
		// A script's ${RANK} is the shell's. Kustomizations are often given variables by a patch of the whole cluster.
		annotate(patchTarget{Kind: ".*"}, "substitute", "disabled"),
		// What is made anew in place of a change that the API server refuses, without a loss: no pod and no data
		// hang on these. Pods, Jobs, StatefulSets and claims are not among them.
		annotate(patchTarget{Kind: "Service|RoleBinding|ClusterRoleBinding|StorageClass"}, "force", "enabled"),
		// Kueue's writes would be taken back, which the API server refuses, and that stops the Kustomization.
		annotate(patchTarget{LabelSelector: "kueue.x-k8s.io/queue-name"}, "ssa", "IfNotPresent"),
	}
}

// endless says which object of a folder may be waited for until the timeout, or to the end of training; "" where none
// is.
func endless(folder Folder) string {
	for _, o := range folder.Objects {
		switch o.GroupKind {
		case schema.GroupKind{Group: "batch", Kind: "Job"}:
			return "Flux waits for a Job to end, and no expression changes that"
		case schema.GroupKind{Kind: "Pod"}:
			return "Flux takes a pod for failed that waits for a node longer than 15 seconds"
		case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
			return "a claim may wait for its first pod, which a suspended job does not have"
		}
	}
	return ""
}

// expressions are those of the kinds in a folder that are asked how they are.
func expressions(folder Folder) (all []healthCheckExpr) {
	for _, k := range apis.Kinds {
		if !folder.has(k.GroupKind()) || k.Health.None != "" || k.Health.Passive {
			continue
		}
		current, failed := k.Health.CEL()
		all = append(all, healthCheckExpr{k.GroupVersion().String(), k.Kind, current, failed})
	}
	return all
}

// notes are what Flux cannot be told by its objects.
func (f Flux) notes(folders []Folder) (notes []string) {
	switch missing := strings.Join(namespaces(folders), ", "); {
	case missing == "":
	case f.ServiceAccount != "":
		notes = append(notes, "create the namespaces "+missing+" before you apply this: the account has Roles in them")
	case !hasNamespace(folders):
		notes = append(notes, "Flux creates no namespaces: create "+missing+" first, or set createNamespace in a job "+
			"of each")
	}
	var stages []string
	for _, needed := range []struct{ object, by schema.GroupKind }{
		{schema.GroupKind{Kind: "ServiceAccount"}, schema.GroupKind{Kind: "Pod"}},
		{apis.TrainingRuntimeKind.GroupKind(), apis.TrainJobKind.GroupKind()},
	} {
		both := func(f Folder) bool { return f.has(needed.object) && f.has(needed.by) }
		if slices.ContainsFunc(folders, both) {
			stages = append(stages, needed.object.Group+"/"+needed.object.Kind)
		}
	}
	if len(stages) > 0 {
		notes = append(notes, "Flux tries all objects of a job before it applies one, and some are refused until "+
			"others are there: start kustomize-controller with --custom-apply-stage-kinds="+strings.Join(stages, ","))
	}
	return notes
}
