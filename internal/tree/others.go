package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkLayout refuses a place within another one, since whatever reads the outer one would find the jobs of both.
func (w *writer) checkLayout() error {
	abs, err := filepath.Abs(w.Dir)
	if err != nil {
		return fmt.Errorf("finding %s: %w", w.Dir, err)
	}
	if above, err := os.OpenRoot(filepath.Dir(abs)); err == nil {
		outer := (&writer{root: &disk{above}}).isPlace(".")
		_ = above.Close() // it was only read
		if outer {
			return fmt.Errorf("%s is in a directory that holds jobs itself, as its %s says: choose one that is not "+
				"below %s", w.Dir, inventoryFile, filepath.Join(w.Dir, ".."))
		}
	}
	if w.root == nil {
		return nil
	}
	if origin := w.origin(kustomizationFile); strings.HasPrefix(origin, ofJob) {
		return fmt.Errorf("%s was rendered from %s: choose another directory, or remove that one", w.Dir, origin)
	}
	entries, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("reading %s: %w", w.Dir, err)
	}
	for _, e := range entries {
		if e.IsDir() && w.isPlace(e.Name()) {
			return fmt.Errorf("%s holds a directory of jobs, as %s says: name that one, or choose another directory",
				w.Dir, w.name(filepath.Join(e.Name(), inventoryFile)))
		}
	}
	return nil
}

func (w *writer) isPlace(folder string) bool {
	return w.origin(filepath.Join(folder, inventoryFile)) == inventoryOrigin
}

// origin is what a file says that tegen wrote it from, "" of other files and where there is none.
func (w *writer) origin(path string) string {
	if info, err := w.lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	first, err := w.firstLine(path)
	if err != nil {
		return ""
	}
	from, ours := strings.CutPrefix(first, signature)
	if !ours {
		return ""
	}
	from, _, _ = strings.Cut(from, ";")
	return from
}

// planRest goes through the folders of which nothing is rendered this time: those of other jobs, and what an overlay
// held, go with Prune, and stay in the inventory without it. Objects are never in two folders: a reconciler would apply
// each of them from both.
func (w *writer) planRest() error {
	entries, err := w.entries()
	if err != nil {
		return err
	}
	listed := w.listed
	for _, e := range entries {
		if !e.IsDir() || w.folders[e.Name()] {
			continue
		}
		files, ofJobs := w.written(e.Name())
		ofOverlay := e.Name() == RestFolder && w.Rest != nil && len(files) > 0
		if ofJobs || ofOverlay {
			w.others = append(w.others, e.Name())
		}
		goes := w.Prune && (ofJobs || ofOverlay)
		if ofOverlay && !goes {
			if goes, err = w.elsewhere(files); err != nil {
				return err
			}
		}
		if !goes {
			listed = append(listed, files...)
			continue
		}
		for _, path := range files {
			w.plan = append(w.plan, &file{path: path, exists: true})
		}
	}
	return w.planInventory(listed)
}

// elsewhere says whether an object of files is in another one that is planned.
func (w *writer) elsewhere(files []string) (bool, error) {
	planned := map[string]bool{}
	for _, f := range w.plan {
		for _, line := range objectLines(f.path, f.content) {
			_, object, _ := strings.Cut(line, " ")
			planned[object] = true
		}
	}
	for _, path := range files {
		text, err := w.read(path)
		if err != nil {
			return false, err
		}
		for _, line := range objectLines(path, text) {
			if _, object, ok := strings.Cut(line, " "); ok && planned[object] {
				return true, nil
			}
		}
	}
	return false, nil
}

func (w *writer) entries() ([]fs.DirEntry, error) {
	if w.root == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.Dir, err)
	}
	return entries, nil
}

// written are the files of a folder that tegen wrote, and whether it wrote them of jobs. A folder that cannot be read
// is somebody else's.
func (w *writer) written(folder string) (files []string, ofJobs bool) {
	entries, err := fs.ReadDir(w.root.FS(), folder)
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case !e.Type().IsRegular():
		case filepath.Ext(path) == ".yaml":
			origin := w.origin(path)
			if origin != "" {
				files = append(files, path)
			}
			ofJobs = ofJobs || strings.HasPrefix(origin, ofJob)
		}
	}
	return files, ofJobs
}

// read is the text of a file that tegen wrote.
func (w *writer) read(path string) ([]byte, error) {
	text, err := w.root.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
	}
	return text, nil
}
