package gitops

import "k8s.io/apimachinery/pkg/runtime/schema"

// The fields that are rendered of Flux's API (source-controller and kustomize-controller v1.9.5, api/v1).

var (
	gitRepositoryKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
	ociRepositoryKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"}
	kustomizationKind = schema.GroupVersionKind{
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1",
		Kind: "Kustomization",
	}
)

type gitRepositorySpec struct {
	Interval       string     `json:"interval"`
	URL            string     `json:"url"`
	Provider       string     `json:"provider,omitempty"`
	SecretRef      *secretRef `json:"secretRef,omitempty"`
	Ref            gitRef     `json:"ref"`
	SparseCheckout []string   `json:"sparseCheckout,omitempty"`
}

type secretRef struct {
	Name string `json:"name"`
}

type gitRef struct {
	Branch string `json:"branch,omitempty"`
	Name   string `json:"name,omitempty"`
	Commit string `json:"commit,omitempty"`
}

type ociRepositorySpec struct {
	Interval  string     `json:"interval"`
	URL       string     `json:"url"`
	Provider  string     `json:"provider,omitempty"`
	SecretRef *secretRef `json:"secretRef,omitempty"`
	Insecure  bool       `json:"insecure,omitempty"`
	Ref       ociRef     `json:"ref"`
}

type ociRef struct {
	Tag    string `json:"tag,omitempty"`
	Digest string `json:"digest,omitempty"`
}

type kustomizationSpec struct {
	Interval           string            `json:"interval"`
	RetryInterval      string            `json:"retryInterval"`
	Timeout            string            `json:"timeout"`
	SourceRef          sourceRef         `json:"sourceRef"`
	Path               string            `json:"path"`
	Prune              bool              `json:"prune"`
	DeletionPolicy     string            `json:"deletionPolicy"`
	ServiceAccountName string            `json:"serviceAccountName,omitempty"`
	Wait               bool              `json:"wait"`
	HealthCheckExprs   []healthCheckExpr `json:"healthCheckExprs,omitempty"`
	Patches            []patch           `json:"patches"`
}

type sourceRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

type healthCheckExpr struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Current    string `json:"current"`
	Failed     string `json:"failed"`
}

type patch struct {
	Target patchTarget `json:"target"`
	Patch  string      `json:"patch"`
}

// patchTarget selects objects by a regular expression or by labels.
type patchTarget struct {
	Kind          string `json:"kind,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
}
