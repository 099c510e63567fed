package gitops

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/apis"
)

// ArgoCD are the flags of an ApplicationSet.
type ArgoCD struct {
	Options
	Project  string // "" for one that is rendered
	Cluster  string // name or address
	SelfHeal bool
	// Plugin has Argo CD render the jobs, whose files Path holds, through the overlay, where one is named.
	Plugin  bool
	Overlay string
}

// InCluster is the address under which Argo CD knows the cluster that it runs in.
const InCluster = "https://kubernetes.default.svc"

// Check returns every mistake in the flags, a line each.
func (a ArgoCD) Check() error {
	errs := a.check()
	if wrong := validation.IsDNS1123Subdomain(a.Project); a.Project != "" && len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--project: must be the name of an AppProject, such as default, not %q",
			a.Project))
	}
	if _, err := a.destination(); err != nil {
		errs = append(errs, err)
	} else if err := a.checkPatterns(); err != nil {
		errs = append(errs, err)
	}
	switch {
	case a.Plugin && a.IsOCI():
		errs = append(errs, errors.New("--plugin: needs a git repository in --repo: an artifact is rendered already"))
	case a.Overlay != "" && !a.Plugin:
		errs = append(errs, errors.New("--overlay: needs --plugin: a tree was rendered through its overlay"))
	case a.Overlay != "":
		if err := CheckPath(a.Overlay); err != nil {
			errs = append(errs, fmt.Errorf("--overlay: %w", err))
		}
	}
	return errors.Join(errs...)
}

// destination tells a name from an address.
func (a ArgoCD) destination() (destination, error) {
	if u, err := url.Parse(a.Cluster); err == nil && u.Scheme == "https" && u.Host != "" {
		return destination{Server: a.Cluster}, nil
	}
	if len(validation.IsDNS1123Subdomain(a.Cluster)) > 0 {
		return destination{}, fmt.Errorf("--cluster: must be the name or the https:// address of a cluster that Argo "+
			"CD knows, such as in-cluster or %s, not %q", InCluster, a.Cluster)
	}
	return destination{Name: a.Cluster}, nil
}

// What the template of a set fills in for each job: from the element of a list, a folder's name, or a job's own file.
const (
	jobOfList       = "{{.job}}"
	namespaceOfList = "{{.namespace}}"
	jobOfFolder     = "{{.path.basename}}"
	jobOfFile       = "{{.metadata.name}}"
	namespaceOfFile = "{{.metadata.namespace}}"

	// namespaceOfFolder is that of its kustomization, which has none beside jobs.
	namespaceOfFolder = `{{dig "metadata" "namespace" "" .}}`
)

// ApplicationSet returns an AppProject, unless the options name one, and an ApplicationSet that makes an Application of
// each job; and what to tell the person. Of git it takes every folder with a kustomization that is there; of an
// artifact, which Argo CD cannot list, the folders that are passed in. The options have been checked, and the tree
// against them.
func ApplicationSet(a ArgoCD, folders []Folder) ([]runtime.Object, []string) {
	to, _ := a.destination() // checked
	spec := applicationSetSpec{
		GoTemplate:        true,
		GoTemplateOptions: []string{"missingkey=error"},
		SyncPolicy:        applicationSetSyncPolicy{PreserveResourcesOnDeletion: a.OnRemoval == Keep},
	}
	var source applicationSource
	var job string
	switch {
	case a.IsOCI():
		job, source.Path, to.Namespace = jobOfList, path.Join(a.Path, jobOfList), namespaceOfList
		spec.Generators = fromList(folders)
	case a.Plugin:
		job, source, to.Namespace = jobOfFile, a.rendering(), namespaceOfFile
		spec.Generators = a.fromGit("*.yaml")
	default:
		job, source.Path, to.Namespace = jobOfFolder, "{{.path.path}}", namespaceOfFolder
		spec.Generators = a.fromGit("*/" + kustomizationFile)
	}
	source.RepoURL, source.TargetRevision = a.address(), a.revision()
	if !a.Plugin {
		source.Directory = &directory{Exclude: kustomizationFile} // else the folder is built by kustomize
	}
	// It has no annotation argocd.argoproj.io/manifest-generate-paths, which would spare repo-server other folders: a
	// commit that comes after a mistake, or while a sync runs, would then not be synced (argo-cd issue 27875).
	spec.Template.Metadata = metav1.ObjectMeta{Name: a.Name + "-" + job}
	spec.Template.Spec = applicationSpec{
		Project:           a.project(),
		Source:            source,
		Destination:       to,
		IgnoreDifferences: ignored(),
		SyncPolicy:        a.syncPolicy(folders),
	}
	meta := metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace}
	objects := []runtime.Object{apis.New(applicationSetKind, meta, spec)}
	if a.ownProject() { // first: Applications of a project that is missing have an error
		objects = slices.Insert(objects, 0, a.appProject(folders))
	}
	return objects, a.notes(folders)
}

// fromGit finds files in the tree, and none in folders below. Argo CD's stars match slashes too, unless
// --enable-new-git-file-globbing is set.
func (a ArgoCD) fromGit(files string) []generator {
	return []generator{{Git: &gitGenerator{RepoURL: a.URL, Revision: a.revision(), Files: []gitPath{
		{Path: path.Join(a.Path, files)},
		{Path: path.Join(a.Path, "*", files), Exclude: true},
	}}}}
}

// fromList has an element for each folder.
func fromList(folders []Folder) []generator {
	var list listGenerator
	for _, f := range folders {
		list.Elements = append(list.Elements, map[string]string{"job": f.Name, "namespace": f.Namespace})
	}
	return []generator{{List: &list}}
}

// createsNamespaces reports that Argo CD creates the namespaces of jobs. The project has to permit the kind Namespace
// for that, and with it a change to each Namespace of the cluster.
func (a ArgoCD) createsNamespaces(folders []Folder) bool {
	return !a.ownProject() || hasNamespace(folders)
}

// notes are what Argo CD cannot be told by its objects, and what the project permits.
func (a ArgoCD) notes(folders []Folder) (notes []string) {
	var created []string
	if a.createsNamespaces(folders) {
		for _, f := range folders {
			created = append(created, f.Namespace)
		}
	}
	missing := slices.DeleteFunc(namespaces(folders), func(n string) bool { return slices.Contains(created, n) })
	switch list := strings.Join(missing, ", "); {
	case list == "":
	case a.createsNamespaces(folders):
		notes = append(notes, "Argo CD creates the namespaces of jobs alone: create "+list+" first")
	default:
		notes = append(notes, "create the namespaces "+list+" first: the AppProject does not permit Argo CD to do it")
	}
	switch {
	case a.ownProject():
		cluster, namespaced := permitted(folders)
		notes = append(notes, fmt.Sprintf("the AppProject %s permits only the kinds and namespaces of the tree: %s. "+
			"For another kind or namespace apply the new output of this command before the commit, or name an "+
			"AppProject with --project", a.project(), contents(folders, cluster, namespaced)))
		if len(cluster) > 0 {
			notes = append(notes, "the AppProject names kinds, not objects: a commit can change every "+
				kindNames(cluster)+" of the cluster")
		}
	case a.Project == "":
		notes = append(notes, "the Applications are in the AppProject default, which permits everything unless you "+
			"changed it: only the plugin knows which kinds the jobs need. Name another with --project")
	}
	return notes
}

// syncPolicy never gives up: a revision that failed is tried again until there is one that does not. It has no
// Replace=true and no Force=true, which would delete a job that runs.
func (a ArgoCD) syncPolicy(folders []Folder) syncPolicy {
	policy := syncPolicy{
		Automated: automated{Prune: true, SelfHeal: a.SelfHeal},
		Retry: retry{
			Limit: -1, Refresh: true, // without it the revision that failed is tried, not the one that mends it
			Backoff: backoff{Duration: "10s", Factor: 2, MaxDuration: "2m"},
		},
		SyncOptions: []string{
			"ApplyOutOfSyncOnly=true",
			"RespectIgnoreDifferences=true",
			"SkipDryRunOnMissingResource=true", // where a definition comes later, all else is applied
		},
	}
	if a.createsNamespaces(folders) { // which the destination names
		policy.SyncOptions = append(policy.SyncOptions, "CreateNamespace=true")
	}
	return policy
}

func ignored() (all []ignoredDifferences) {
	for _, w := range apis.WrittenByOthers() {
		all = append(all, ignoredDifferences{w.Group, w.Kind, w.Paths})
	}
	return all
}
