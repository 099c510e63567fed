package krm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/tegen-dev/tegen/internal/finding"
)

// Unused notes the kustomizations in a directory and below it whose fields change their resources: its jobs are read
// without them.
func Unused(root string) (notes finding.List) {
	root += string(filepath.Separator) // of a link, what it leads to
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // whoever reads the jobs reports it
			return nil
		case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.IsDir() || !slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name()):
			return nil
		}
		why := ""
		_, t, err := readFile(filepath.Dir(path))
		if err != nil {
			why = "it cannot be read: " + strings.ReplaceAll(err.Error(), "\n", " ")
		} else if fields := changing(t); len(fields) > 0 {
			why = strings.Join(fields, ", ")
		}
		if why != "" {
			notes = append(notes, finding.Finding{
				Rule: "overlay/unused", Level: finding.Note, File: path, Line: 1, Column: 1,
				Message: fmt.Sprintf("is not used without --overlay: %s. Use --overlay %s, or remove it", why,
					filepath.Dir(path)),
			})
		}
		return nil
	})
	return notes
}

// changing are the fields of a kustomization that do more than list resources.
func changing(t types.Kustomization) []string {
	text, err := json.Marshal(t)
	var fields map[string]any
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "resources"} {
		delete(fields, name)
	}
	return slices.Sorted(maps.Keys(fields))
}
