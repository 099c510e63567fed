package gitops

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
)

// Folder is a folder of a rendered tree: one job, or what an overlay holds beside its jobs.
type Folder struct {
	Name      string
	Namespace string   // of the job; "" where it has none, and beside jobs
	Objects   []Object // in the order of the files
}

// Object is what a controller must be allowed to write.
type Object struct {
	schema.GroupKind
	Namespace, Name string

	role *rbacv1.ClusterRole // of a Role or ClusterRole
	ref  *rbacv1.RoleRef     // of a RoleBinding or ClusterRoleBinding
}

// clusterScoped reports whether the object is in no namespace. One of a kind that tegen does not know is, unless it
// names one.
func (o Object) clusterScoped() bool {
	return o.Namespace == "" && (apis.ClusterScoped(o.Kind) || !o.known())
}

// known reports whether the kind is one of Kubernetes itself or one that tegen renders.
func (o Object) known() bool {
	for gvk := range manifest.Types() {
		if gvk.GroupKind() == o.GroupKind {
			return true
		}
	}
	return slices.ContainsFunc(apis.Kinds, func(k apis.Kind) bool { return k.GroupKind() == o.GroupKind })
}

// has reports whether the folder holds an object of a kind.
func (f Folder) has(k schema.GroupKind) bool {
	return slices.ContainsFunc(f.Objects, func(o Object) bool { return o.GroupKind == k })
}

const kustomizationFile = "kustomization.yaml"

// ReadTree reads the folders of a tree that 'tegen render -o' wrote; name is what messages call it.
func ReadTree(tree fs.FS, name string) ([]Folder, error) {
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, errors.Unwrap(err))
	}
	var folders []Folder
	var errs []error
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		list, err := fs.ReadFile(tree, path.Join(e.Name(), kustomizationFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f, err := readFolder(tree, e.Name(), name)
		f.Namespace = namespaceOf(list)
		folders, errs = append(folders, f), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s holds no rendered job: make it with 'tegen render FILE... -o %s', and name the "+
			"folder that holds a folder for each job", name, name)
	}
	return folders, nil
}

// namespaceOf is what a kustomization says, as Argo CD reads it.
func namespaceOf(kustomization []byte) string {
	var k struct {
		Metadata struct{ Namespace string }
	}
	if yaml.Unmarshal(kustomization, &k) != nil {
		return "" // kustomize will complain
	}
	return k.Metadata.Namespace
}

func readFolder(tree fs.FS, folder, name string) (Folder, error) {
	f := Folder{Name: folder}
	files, err := fs.Glob(tree, path.Join(folder, "*.yaml"))
	if err != nil {
		return f, fmt.Errorf("reading %s: %w", path.Join(name, folder), err)
	}
	for _, file := range files {
		if path.Base(file) == kustomizationFile {
			continue
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return f, fmt.Errorf("reading %s: %w", path.Join(name, file), errors.Unwrap(err))
		}
		objects, errs := manifest.ReadLoosely(path.Join(name, file), text)
		if err := errors.Join(errs...); err != nil {
			return f, err
		}
		for _, o := range objects {
			if err := f.add(o.Object); err != nil {
				return f, fmt.Errorf("%s: %w", path.Join(name, file), err)
			}
		}
	}
	return f, nil
}

// ReadJobs looks at the files of jobs that the plugin is to render, each of which becomes an Application: Argo CD reads
// a file's name and namespace itself, and no further than its first document.
func ReadJobs(jobs fs.FS, name string) error {
	files, err := fs.Glob(jobs, "*.yaml")
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s holds no job: name the folder that holds a file, *.yaml, for each job", name)
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, readJob(jobs, file, path.Join(name, file)))
	}
	return errors.Join(errs...)
}

func readJob(jobs fs.FS, file, name string) error {
	text, err := fs.ReadFile(jobs, file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, errors.Unwrap(err))
	}
	documents, errs := manifest.ReadLoosely(name, text)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(documents) != 1 {
		return fmt.Errorf("%s holds %d documents, and becomes one Application: write each job into a file of its own",
			name, len(documents))
	}
	job := documents[0].Object
	if job["kind"] != names.KindTrainingJob {
		return fmt.Errorf("%s holds no %s, and would become an Application: keep other files elsewhere", name,
			names.KindTrainingJob)
	}
	meta, _ := job["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if text, _ := meta[field].(string); text == "" {
			return fmt.Errorf("%s: metadata.%s is missing, by which Argo CD names the Application and what it creates",
				name, field)
		}
	}
	return nil
}

func (f *Folder) add(object map[string]any) error {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = "" // the core group has none
	}
	meta, _ := object["metadata"].(map[string]any)
	o := Object{GroupKind: schema.GroupKind{Group: group, Kind: kind}}
	o.Namespace, _ = meta["namespace"].(string)
	o.Name, _ = meta["name"].(string)
	if err := o.readRBAC(object); err != nil {
		return fmt.Errorf("%s %s cannot be read: %w", o.Kind, o.Name, err)
	}
	f.Objects = append(f.Objects, o)
	return nil
}

// readRBAC reads which permissions the object grants. A ClusterRole has the fields of a Role, and its binding those of
// a RoleBinding.
func (o *Object) readRBAC(object map[string]any) error {
	if o.Group != rbacv1.GroupName {
		return nil
	}
	var into any
	var binding rbacv1.RoleBinding
	switch o.Kind {
	case roleKind, clusterRoleKind:
		o.role = &rbacv1.ClusterRole{}
		into = o.role
	case roleKind + "Binding", clusterRoleKind + "Binding":
		o.ref, into = &binding.RoleRef, &binding
	default:
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
}

// objects are those of all folders.
func objects(folders []Folder) (all []Object) {
	for _, f := range folders {
		all = append(all, f.Objects...)
	}
	return all
}

// namespaces are those of all folders, sorted.
func namespaces(folders []Folder) []string {
	all := map[string]bool{}
	for _, o := range objects(folders) {
		all[o.Namespace] = true
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// hasNamespace reports whether a folder holds a Namespace.
func hasNamespace(folders []Folder) bool {
	return slices.ContainsFunc(folders, func(f Folder) bool { return f.has(schema.GroupKind{Kind: "Namespace"}) })
}
