package gitops

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/apis"
)

// ArgoCD are the flags of an ApplicationSet.
type ArgoCD struct {
	Options
	Project  string
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
	if wrong := validation.IsDNS1123Subdomain(a.Project); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--project: must be the name of an AppProject, such as default, not %q",
			a.Project))
	}
	if _, err := a.destination(); err != nil {
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
)

// ApplicationSet returns an ApplicationSet that makes an Application of each job, and what to tell the person. Of git
// it takes every folder that is there; of an artifact, which Argo CD cannot list, the folders that are passed in. The
// options have been checked.
func ApplicationSet(a ArgoCD, folders []Folder) (objects []runtime.Object, notes []string) {
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
		spec.Generators, notes = fromList(folders)
	case a.Plugin:
		job, source, to.Namespace = jobOfFile, a.rendering(), namespaceOfFile
		spec.Generators = a.fromGit(gitGenerator{Files: []gitPath{{path.Join(a.Path, "*.yaml")}}})
	default:
		job, source.Path = jobOfFolder, "{{.path.path}}"
		to.Namespace, notes = oneNamespace(folders)
		spec.Generators = a.fromGit(gitGenerator{Directories: []gitPath{{path.Join(a.Path, "*")}}})
	}
	source.RepoURL, source.TargetRevision = a.address(), a.revision()
	if !a.Plugin {
		source.Directory = &directory{Exclude: kustomizationFile} // else the folder is built by kustomize
	}
	// It has no annotation argocd.argoproj.io/manifest-generate-paths, which would spare repo-server other folders: a
	// commit that comes after a mistake, or while a sync runs, would then not be synced (argo-cd issue 27875).
	spec.Template.Metadata = metav1.ObjectMeta{Name: a.Name + "-" + job}
	spec.Template.Spec = applicationSpec{
		Project:           a.Project,
		Source:            source,
		Destination:       to,
		IgnoreDifferences: ignored(),
		SyncPolicy:        a.syncPolicy(to.Namespace != ""),
	}
	meta := metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace}
	return []runtime.Object{apis.New(applicationSetKind, meta, spec)}, notes
}

func (a ArgoCD) fromGit(g gitGenerator) []generator {
	g.RepoURL, g.Revision = a.URL, a.revision()
	return []generator{{Git: &g}}
}

// oneNamespace is the namespace of all folders; Argo CD creates it. Where there are several it creates none.
func oneNamespace(folders []Folder) (string, []string) {
	all := namespaces(folders)
	switch len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	}
	return "", []string{fmt.Sprintf("the jobs are in %d namespaces (%s), of which Argo CD creates none: create them "+
		"first, set createNamespace in a job of each, or keep a tree for each namespace", len(all),
		strings.Join(all, ", "))}
}

// fromList has an element for each folder.
func fromList(folders []Folder) ([]generator, []string) {
	var list listGenerator
	var notes []string
	for _, f := range folders {
		element := map[string]string{"job": f.Name, "namespace": ""}
		if len(f.Namespaces) > 0 {
			element["namespace"] = f.Namespaces[0]
		}
		if len(f.Namespaces) > 1 {
			notes = append(notes, fmt.Sprintf("%s is in %d namespaces, of which Argo CD creates %s alone: create the "+
				"others first", f.Name, len(f.Namespaces), f.Namespaces[0]))
		}
		list.Elements = append(list.Elements, element)
	}
	return []generator{{List: &list}}, notes
}

// syncPolicy never gives up: a revision that failed is tried again until there is one that does not. It has no
// Replace=true and no Force=true, which would delete a job that runs.
func (a ArgoCD) syncPolicy(createNamespace bool) syncPolicy {
	options := []string{
		"ApplyOutOfSyncOnly=true",
		"RespectIgnoreDifferences=true",
		"SkipDryRunOnMissingResource=true", // where a definition comes later, all else is applied
	}
	if createNamespace {
		options = append(options, "CreateNamespace=true")
	}
	return syncPolicy{
		Automated: automated{Prune: true, SelfHeal: a.SelfHeal},
		Retry: retry{
			Limit: -1, Refresh: true, // without it the revision that failed is tried, not the one that mends it
			Backoff: backoff{Duration: "10s", Factor: 2, MaxDuration: "2m"},
		},
		SyncOptions: options,
	}
}

func ignored() (all []ignoredDifferences) {
	for _, w := range apis.WrittenByOthers() {
		all = append(all, ignoredDifferences{w.Group, w.Kind, w.Paths})
	}
	return all
}
