package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// File is one file of a tree.
type File struct {
	Path    string // below the directory, with slashes
	Content []byte
}

// Read returns the files below a directory in the order of their paths, at most max bytes of them. It refuses what
// Write did not leave like that: a file without its signature, a link, a folder whose kustomization lists other files
// than are there. Inventories and names that begin with a dot are left out.
func Read(dir string, max int64) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }() // it was only read
	r := &reader{w: &writer{Place: Place{Dir: dir}, root: &disk{root}}, left: max}
	if r.w.origin(topFile) == topOrigin {
		return nil, NotOnePlace(dir)
	}
	if err := Unfinished(dir); err != nil {
		return nil, err
	}
	if err := fs.WalkDir(root.FS(), ".", r.visit); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	if len(r.files) == 0 && len(r.errs) == 0 {
		return nil, fmt.Errorf("reading %s: there is nothing in it that tegen rendered: render into it first, with "+
			"'tegen render -o %s'", dir, dir)
	}
	r.folders()
	return r.files, errors.Join(r.errs...)
}

type reader struct {
	w     *writer
	files []File
	left  int64 // bytes
	errs  []error
}

func (r *reader) visit(name string, e fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case name != "." && strings.HasPrefix(e.Name(), "."):
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	case e.IsDir(), r.w.origin(name) == inventoryOrigin:
		return nil
	case !e.Type().IsRegular():
		r.errs = append(r.errs, r.w.inTheWay(name, e.Type()))
		return nil
	}
	f, err := r.w.root.Open(name)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(f, r.left+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if r.left -= int64(len(content)); r.left < 0 {
		return errors.New("it holds more than is published at once: take its folders one by one")
	}
	if !strings.HasPrefix(string(content), signature) {
		r.errs = append(r.errs, fmt.Errorf("%s was not written by tegen: move it out of %s", r.w.name(name), r.w.Dir))
		return nil
	}
	r.files = append(r.files, File{Path: name, Content: content})
	return nil
}

// folders holds each folder's files against its kustomization, which is the record of one whole render.
func (r *reader) folders() {
	listed, there := map[string][]string{}, map[string][]string{}
	var folders []string
	for _, f := range r.files {
		folder, base := path.Dir(f.Path), path.Base(f.Path)
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		if base != kustomizationFile {
			there[folder] = append(there[folder], base)
			continue
		}
		for line := range strings.Lines(string(f.Content)) {
			if name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "- "); ok {
				listed[folder] = append(listed[folder], name)
			}
		}
	}
	for _, folder := range folders {
		want, is := listed[folder], there[folder]
		slices.Sort(want)
		if slices.Equal(want, is) {
			continue
		}
		r.errs = append(r.errs, fmt.Errorf("%s is not as tegen rendered it: %s lists %s, and there are %s: render it "+
			"again", r.w.name(folder), kustomizationFile, some(want), some(is)))
	}
}

// some is a list of names for messages.
func some(names []string) string {
	if len(names) == 0 {
		return "no files"
	}
	return strings.Join(names, ", ")
}
