package gitops

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
)

// defaultProject is the AppProject of an installation of Argo CD, which permits everything.
const defaultProject = "default"

// ownProject reports that an AppProject is rendered. What the plugin renders of jobs is not known beforehand.
func (a ArgoCD) ownProject() bool { return a.Project == "" && !a.Plugin }

// project names the AppProject of the Applications.
func (a ArgoCD) project() string {
	switch {
	case a.Project != "":
		return a.Project
	case a.Plugin:
		return defaultProject
	}
	return "tegen-" + a.Name // not that of a team, which has other Applications
}

// checkPatterns refuses what an AppProject would read as a pattern.
func (a ArgoCD) checkPatterns() error {
	for _, text := range []string{a.address(), a.Cluster} {
		if a.ownProject() && strings.ContainsAny(text, `*?[]{}\`) {
			return fmt.Errorf("--project: an AppProject would read %s as a pattern: create one, and name it", text)
		}
	}
	return nil
}

// CheckTree refuses a tree that no AppProject can be limited to.
func (a ArgoCD) CheckTree(folders []Folder) error {
	if !a.ownProject() || a.Cluster != InCluster || !slices.Contains(namespaces(folders), a.Namespace) {
		return nil
	}
	return fmt.Errorf("the tree has objects in %s, the namespace of Argo CD: a pod there can run as an account of "+
		"Argo CD, so that no AppProject limits it. Move the job to another namespace, or name a project with --project",
		a.Namespace)
}

// appProject returns the AppProject that permits a tree and nothing else.
func (a ArgoCD) appProject(folders []Folder) runtime.Object {
	spec := appProjectSpec{
		Description: "What tegen rendered, and nothing else. 'tegen gitops argocd' writes it.",
		SourceRepos: []string{a.address()},
	}
	targets := namespaces(folders)
	for _, f := range folders {
		targets = append(targets, f.Namespace) // of its Application; "" permits no object in a namespace
	}
	for _, namespace := range union(targets, nil) {
		to, _ := a.destination() // checked
		to.Namespace = namespace
		spec.Destinations = append(spec.Destinations, to)
	}
	cluster, namespaced := permitted(folders)
	spec.ClusterResourceWhitelist, spec.NamespaceResourceWhitelist = groupKinds(cluster), groupKinds(namespaced)
	meta := metav1.ObjectMeta{Name: a.project(), Namespace: a.Namespace}
	if a.OnRemoval == Delete { // until then Argo CD deletes the objects of Applications that are in it
		meta.Finalizers = []string{"resources-finalizer.argocd.argoproj.io"}
	}
	return apis.New(appProjectKind, meta, spec)
}

// groupKinds is a list of an AppProject. An empty list permits nothing, one that is missing may permit everything.
func groupKinds(kinds []schema.GroupKind) []metav1.GroupKind {
	all := []metav1.GroupKind{}
	for _, k := range kinds {
		all = append(all, metav1.GroupKind(k))
	}
	return all
}

var (
	podKind        = schema.GroupKind{Kind: "Pod"}
	jobKind        = schema.GroupKind{Group: "batch", Kind: "Job"}
	replicaSetKind = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
)

// made are the kinds that a controller makes of a kind on the way to its pods.
var made = map[string][]schema.GroupKind{
	"Job":         {podKind}, // that of Volcano too
	"StatefulSet": {podKind}, "DaemonSet": {podKind}, "ReplicaSet": {podKind},
	"CronJob": {jobKind, podKind}, "Deployment": {replicaSetKind, podKind},
	"JobSet": {jobKind, podKind}, "TrainJob": {apis.JobSetKind.GroupKind(), jobKind, podKind},
	"MPIJob": {jobKind, podKind}, "MxJob": {jobKind, podKind},
	"PyTorchJob": {podKind}, "MXJob": {podKind}, "ElasticJob": {podKind},
}

// permitted are the kinds of an AppProject: those of the tree, and those that controllers make of them. Argo CD shows
// an object, and the log of a pod, only if the project permits its kind (argo-cd, controller/appcontroller.go,
// getResourceTree). Whoever may apply a Job can run every pod anyway.
func permitted(folders []Folder) (cluster, namespaced []schema.GroupKind) {
	cluster, namespaced = kinds(folders)
	for _, k := range namespaced {
		namespaced = append(namespaced, made[k.Kind]...)
	}
	return cluster, sortedKinds(namespaced)
}

// kinds are those of the objects, sorted.
func kinds(folders []Folder) (cluster, namespaced []schema.GroupKind) {
	for _, o := range objects(folders) {
		if o.clusterScoped() {
			cluster = append(cluster, o.GroupKind)
		} else {
			namespaced = append(namespaced, o.GroupKind)
		}
	}
	return sortedKinds(cluster), sortedKinds(namespaced)
}

func sortedKinds(all []schema.GroupKind) []schema.GroupKind {
	slices.SortFunc(all, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// contents lists kinds, and the namespaces of a tree.
func contents(folders []Folder, cluster, namespaced []schema.GroupKind) string {
	var parts []string
	if len(namespaced) > 0 {
		parts = append(parts, kindNames(namespaced)+" in "+strings.Join(namespaces(folders), ", "))
	}
	if len(cluster) > 0 {
		parts = append(parts, "cluster-scoped "+kindNames(cluster))
	}
	return strings.Join(parts, ", and ")
}

// kindNames are those of kinds, with the group of a custom resource.
func kindNames(kinds []schema.GroupKind) string {
	var all []string
	for _, k := range kinds {
		if strings.Contains(k.Group, ".") && !strings.HasSuffix(k.Group, ".k8s.io") {
			all = append(all, k.String())
		} else {
			all = append(all, k.Kind)
		}
	}
	return strings.Join(all, ", ")
}

// unknownKinds are kinds whose resource names tegen cannot know.
func unknownKinds(folders []Folder) string {
	var all []schema.GroupKind
	for _, o := range objects(folders) {
		if !o.known() {
			all = append(all, o.GroupKind)
		}
	}
	return kindNames(sortedKinds(all))
}
