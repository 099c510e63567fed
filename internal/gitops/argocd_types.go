package gitops

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The fields that are rendered of Argo CD's API (argo-cd v3.2.11, pkg/apis/application/v1alpha1).

var (
	applicationSetKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "ApplicationSet"}
	appProjectKind     = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "AppProject"}
)

type appProjectSpec struct {
	Description                string             `json:"description"`
	SourceRepos                []string           `json:"sourceRepos"`
	Destinations               []destination      `json:"destinations"`
	ClusterResourceWhitelist   []metav1.GroupKind `json:"clusterResourceWhitelist"`
	NamespaceResourceWhitelist []metav1.GroupKind `json:"namespaceResourceWhitelist"`
}

type applicationSetSpec struct {
	GoTemplate        bool                     `json:"goTemplate"`
	GoTemplateOptions []string                 `json:"goTemplateOptions"`
	Generators        []generator              `json:"generators"`
	SyncPolicy        applicationSetSyncPolicy `json:"syncPolicy"`
	Template          applicationTemplate      `json:"template"`
}

type applicationSetSyncPolicy struct {
	PreserveResourcesOnDeletion bool `json:"preserveResourcesOnDeletion"`
}

type generator struct {
	Git  *gitGenerator  `json:"git,omitempty"`
	List *listGenerator `json:"list,omitempty"`
}

type gitGenerator struct {
	RepoURL  string    `json:"repoURL"`
	Revision string    `json:"revision"`
	Files    []gitPath `json:"files"`
}

type gitPath struct {
	Path    string `json:"path"`
	Exclude bool   `json:"exclude,omitempty"`
}

type listGenerator struct {
	Elements []map[string]string `json:"elements"`
}

type applicationTemplate struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     applicationSpec   `json:"spec"`
}

type applicationSpec struct {
	Project           string               `json:"project"`
	Source            applicationSource    `json:"source"`
	Destination       destination          `json:"destination"`
	IgnoreDifferences []ignoredDifferences `json:"ignoreDifferences,omitempty"`
	SyncPolicy        syncPolicy           `json:"syncPolicy"`
}

type applicationSource struct {
	RepoURL        string          `json:"repoURL"`
	TargetRevision string          `json:"targetRevision"`
	Path           string          `json:"path"`
	Directory      *directory      `json:"directory,omitempty"`
	Plugin         *pluginOfSource `json:"plugin,omitempty"`
}

type directory struct {
	Exclude string `json:"exclude,omitempty"`
}

type pluginOfSource struct {
	Name string   `json:"name"`
	Env  []envVar `json:"env,omitempty"`
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type destination struct {
	Server    string `json:"server,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

type ignoredDifferences struct {
	Group             string   `json:"group"`
	Kind              string   `json:"kind"`
	JQPathExpressions []string `json:"jqPathExpressions"`
}

type syncPolicy struct {
	Automated   automated `json:"automated"`
	Retry       retry     `json:"retry"`
	SyncOptions []string  `json:"syncOptions"`
}

type automated struct {
	Prune    bool `json:"prune"`
	SelfHeal bool `json:"selfHeal"`
}

type retry struct {
	Limit   int     `json:"limit"`
	Refresh bool    `json:"refresh"`
	Backoff backoff `json:"backoff"`
}

type backoff struct {
	Duration    string `json:"duration"`
	Factor      int    `json:"factor"`
	MaxDuration string `json:"maxDuration"`
}
