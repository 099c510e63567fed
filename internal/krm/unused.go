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

	"github.com/tegen-dev/tegen/internal/finding"
)

// Unused notes the kustomizations in a directory and below it whose fields change their resources: its jobs are read
// without them.
func Unused(root string) (notes finding.List) {
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // whoever reads the jobs reports it
			return nil
		case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.IsDir() || !slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name()):
			return nil
		}
		_, t, err := readFile(filepath.Dir(path))
		text, failed := json.Marshal(t)
		var fields map[string]any
		if err != nil || failed != nil || json.Unmarshal(text, &fields) != nil {
			return nil
		}
		for _, name := range []string{"apiVersion", "kind", "metadata", "resources"} {
			delete(fields, name)
		}
		if len(fields) > 0 {
			notes = append(notes, finding.Finding{
				Rule: "overlay/unused", Level: finding.Note, File: path, Line: 1, Column: 1,
				Message: fmt.Sprintf("without --overlay nobody reads this file, and its fields %s change no job",
					strings.Join(slices.Sorted(maps.Keys(fields)), ", ")),
			})
		}
		return nil
	})
	return notes
}
