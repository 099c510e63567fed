package gitops

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
)

// Folder is a folder of a rendered tree: one job, or what an overlay holds beside its jobs.
type Folder struct {
	Name       string
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
		if _, err := fs.Stat(tree, path.Join(e.Name(), kustomizationFile)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f, err := readFolder(tree, e.Name(), name)
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
