package golden

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// Rendered lists the manifests below dir, dir/<case>/<overlay>.yaml, in the order of their names. dir/invalid holds
// inputs that must be refused, so what lies there was never rendered. To find none is an error: nothing would be
// checked.
func Rendered(dir string) ([]string, error) {
	var files []string
	invalid := filepath.Join(dir, "invalid")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path == invalid:
			return fs.SkipDir
		case !entry.IsDir() && filepath.Ext(path) == ".yaml":
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the goldens: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("listing the goldens: no *.yaml under %s; nothing would be checked", dir)
	}
	return files, nil
}
