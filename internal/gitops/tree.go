package gitops

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
)

// Folder is a folder of a rendered tree: one job, or what an overlay holds beside its jobs.
type Folder struct {
	Name       string
	Namespace  string             // of the job; "" where it has none, and beside jobs
	Namespaces []string           // sorted
	Kinds      []schema.GroupKind // in the order of the files
}

// has reports whether the folder holds an object of a kind.
func (f Folder) has(k schema.GroupKind) bool { return slices.Contains(f.Kinds, k) }

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
			f.add(o.Object)
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

func (f *Folder) add(object map[string]any) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = "" // the core group has none
	}
	if k := (schema.GroupKind{Group: group, Kind: kind}); !f.has(k) {
		f.Kinds = append(f.Kinds, k)
	}
	meta, _ := object["metadata"].(map[string]any)
	if ns, _ := meta["namespace"].(string); ns != "" && !slices.Contains(f.Namespaces, ns) {
		f.Namespaces = append(f.Namespaces, ns)
		slices.Sort(f.Namespaces)
	}
}

// namespaces are those of all folders, sorted.
func namespaces(folders []Folder) (all []string) {
	for _, f := range folders {
		all = append(all, f.Namespaces...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
