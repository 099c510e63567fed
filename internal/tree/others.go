package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/render"
)

// Others are the folders in dir that tegen rendered of jobs which are not among bundles. Whether such
// a job is gone, or only not rendered this time, is unknown.
func Others(dir string, bundles []render.Bundle) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	w := &writer{dir: dir, root: root}
	var names []string
	for _, e := range entries {
		if !e.IsDir() || slices.ContainsFunc(bundles,
			func(b render.Bundle) bool { return b.Job.Metadata.Name == e.Name() }) {
			continue
		}
		path := filepath.Join(e.Name(), kustomizationFile)
		if info, err := root.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if first, err := w.firstLine(path); err == nil && strings.HasPrefix(first, signature+"TrainingJob ") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
