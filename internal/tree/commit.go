package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A write has three parts. It stages each new file beside its place, under a temporary name, and syncs it. It then
// renames the journal into place, a file that lists what is left to do. At last complete does that and removes the
// journal. A crash before the journal is there has changed nothing; the temporary files are removed by the next write.
// A crash after it leaves a directory that the next write completes before it does anything else.
const (
	journalFile   = "tegen-unfinished.txt"
	journalOrigin = "a render that has not finished"
)

// step is a line of the journal. Paths have slashes, and are relative to the journal's directory.
type step struct {
	Staged string `json:"staged,omitempty"` // is renamed to Path; where there is none, Path is removed
	Path   string `json:"path"`
}

// commit makes the planned changes of writers, which are in the directory of top or below it.
func (top *writer) commit(ctx context.Context, writers []*writer) (err error) {
	begun := false
	defer func() {
		if begun || err == nil {
			return
		}
		for _, w := range writers {
			w.discard()
		}
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("writing %s: %w: everything in it is as it was", top.Dir, err)
		}
	}()
	var steps []step
	for _, w := range writers {
		if err := w.stage(ctx); err != nil {
			return err
		}
		below := ""
		if w != top {
			below = filepath.Base(w.Dir)
		}
		steps = append(steps, w.steps(below)...)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(steps) == 0 {
		return nil
	}
	if begun, err = top.begin(steps); err != nil {
		return fmt.Errorf("writing %s: %w", top.name(journalFile), err)
	}
	_, err = top.complete()
	return err
}

// steps are what is left to do once everything is staged: new content first, so that no file is missing meanwhile.
func (w *writer) steps(below string) (steps []step) {
	at := func(path string) string { return filepath.ToSlash(filepath.Join(below, path)) }
	for _, f := range w.plan {
		if f.staged != "" {
			steps = append(steps, step{at(f.staged), at(f.path)})
		}
	}
	for _, f := range w.plan {
		if f.content == nil && f.exists {
			steps = append(steps, step{Path: at(f.path)})
		}
	}
	return steps
}

// stage writes and syncs every new content in a temporary file beside its place.
func (w *writer) stage(ctx context.Context) error {
	var unsynced []*os.File
	folders := map[string]bool{}
	for _, f := range w.plan {
		if f.same || f.content == nil && !f.exists {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), closeAll(unsynced))
		}
		folder := filepath.Dir(f.path)
		switch err := w.root.Mkdir(folder, 0o777); {
		case err == nil:
			w.created = append(w.created, folder)
			folders["."] = true
		case !errors.Is(err, fs.ErrExist):
			return errors.Join(fmt.Errorf("making a directory: %w", err), closeAll(unsynced))
		}
		folders[folder] = true
		tmp, err := w.stageFile(f)
		if tmp != nil {
			unsynced = append(unsynced, tmp)
		}
		if err == nil && len(unsynced) == maxOpen {
			err, unsynced = syncAll(unsynced), nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("writing %s: %w", w.name(f.path), err), closeAll(unsynced))
		}
	}
	if err := syncAll(unsynced); err != nil {
		return fmt.Errorf("writing %s: %w", w.Dir, err)
	}
	return w.root.syncFolders(folders)
}

// stageFile leaves the mode to the user's umask, as any other program that makes files does. For a file that goes it
// only tries whether the folder can be changed: after the journal is in place that would be too late.
func (w *writer) stageFile(f *file) (*os.File, error) {
	name, tmp, err := w.temporary(f.path)
	if err != nil {
		return nil, err
	}
	if f.content == nil {
		return nil, errors.Join(tmp.Close(), w.root.Remove(name))
	}
	f.staged = name
	return tmp, w.root.write(tmp, f.content)
}

// temporary makes a file beside a path under a name that no file has.
func (w *writer) temporary(path string) (string, *os.File, error) {
	for i := 1; ; i++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.tegen-new-%d", filepath.Base(path), i))
		f, err := w.root.create(name)
		if !errors.Is(err, fs.ErrExist) {
			return name, f, err
		}
	}
}

// discard removes the temporary files and the folders that were made for them.
func (w *writer) discard() {
	for _, f := range w.plan {
		if f.staged != "" {
			_ = w.root.Remove(f.staged) // what cannot be removed now, the next write removes
		}
	}
	for _, folder := range w.created {
		_ = w.root.Remove(folder)
	}
}

// begin puts the journal in place and reports whether it is there, on an error too. From then on the changes are made,
// now or by the next write.
func (w *writer) begin(steps []step) (begun bool, err error) {
	text := []byte(headerOf(journalOrigin))
	for _, s := range steps {
		line, err := json.Marshal(s)
		if err != nil {
			return false, err
		}
		text = append(append(text, line...), '\n')
	}
	name, tmp, err := w.temporary(journalFile)
	if err != nil {
		return false, err
	}
	err = w.root.write(tmp, text)
	if err = errors.Join(err, syncAll([]*os.File{tmp})); err == nil {
		err = w.root.Rename(name, journalFile)
	}
	if err != nil {
		return false, errors.Join(err, w.root.Remove(name))
	}
	return true, w.root.syncFolders(map[string]bool{".": true})
}

// complete makes the changes that the directory's journal lists, and says whether there was one. Where a crash ended
// it before, it goes on with what is left.
func (w *writer) complete() (bool, error) {
	if w.origin(journalFile) != journalOrigin {
		return false, nil
	}
	steps, err := w.journal()
	if err == nil {
		err = w.do(steps)
	}
	if err != nil {
		return false, fmt.Errorf("completing the render that %s lists: %w. Correct that and run "+
			"'tegen render -o' again for this directory; it completes the render first", w.name(journalFile), err)
	}
	return true, nil
}

// journal reads the journal. Its steps concern files that tegen wrote and nothing else, whoever wrote the journal.
func (w *writer) journal() ([]step, error) {
	text, err := w.root.ReadFile(journalFile)
	if err != nil {
		return nil, err
	}
	var steps []step
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("reading it: %w", err)
		}
		s.Path, s.Staged = filepath.FromSlash(s.Path), filepath.FromSlash(s.Staged)
		if s.Staged != "" && (filepath.Dir(s.Staged) != filepath.Dir(s.Path) ||
			!temporary().MatchString(filepath.Base(s.Staged))) {
			return nil, fmt.Errorf("%s is not the name of a temporary file", w.name(s.Staged))
		}
		for _, path := range []string{s.Path, s.Staged} {
			_, err := w.lstat(path)
			if path == "" || errors.Is(err, fs.ErrNotExist) || temporary().MatchString(filepath.Base(path)) {
				continue
			}
			if w.origin(path) == "" {
				return nil, fmt.Errorf("%s was not written by tegen", w.name(path))
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// do makes the changes of a journal, and removes it. A folder that is empty then goes.
func (w *writer) do(steps []step) error {
	folders := map[string]bool{".": true}
	for _, s := range steps {
		var err error
		if s.Staged != "" {
			err = w.root.Rename(s.Staged, s.Path)
		} else {
			err = w.root.Remove(s.Path)
		}
		if errors.Is(err, fs.ErrNotExist) { // done before a crash
			err = nil
			if s.Staged != "" {
				_, err = w.lstat(s.Path)
			}
		}
		if err != nil {
			return err
		}
		folders[filepath.Dir(s.Path)] = true
	}
	for _, s := range slices.Backward(steps) {
		for folder := filepath.Dir(s.Path); s.Staged == "" && folder != "."; folder = filepath.Dir(folder) {
			if w.root.Remove(folder) != nil {
				break // it holds other files
			}
			delete(folders, folder)
			folders[filepath.Dir(folder)] = true
		}
	}
	if err := w.root.syncFolders(folders); err != nil {
		return err
	}
	if err := w.root.Remove(journalFile); err != nil {
		return err
	}
	return w.root.syncFolders(map[string]bool{".": true})
}

// leftovers are the temporary files of writes that were stopped before their journal was in place: no other write is at
// work here.
func (w *writer) leftovers() (paths []string, err error) {
	entries, err := w.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && temporary().MatchString(e.Name()) {
			paths = append(paths, e.Name())
		}
		if !e.IsDir() {
			continue
		}
		below, err := fs.ReadDir(w.root.FS(), e.Name())
		if err != nil {
			continue // a folder that cannot be read is somebody else's
		}
		for _, f := range below {
			if f.Type().IsRegular() && temporary().MatchString(f.Name()) {
				paths = append(paths, filepath.Join(e.Name(), f.Name()))
			}
		}
	}
	return paths, nil
}

// sweep removes them, and the folders that hold nothing else.
func (w *writer) sweep() error {
	paths, err := w.leftovers()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := w.root.Remove(path); err != nil {
			return fmt.Errorf("removing what a render left that was stopped: %w", err)
		}
		if folder := filepath.Dir(path); folder != "." {
			_ = w.root.Remove(folder) // it stays where it holds anything
		}
	}
	return nil
}

// Unfinished is the error of a directory in which a render was stopped while it changed files, so that its files are
// of two renders. It looks at the directory, at those around it that may be a place or hold several, and at those in
// it.
func Unfinished(dir string) error {
	at := []string{dir, filepath.Join(dir, ".."), filepath.Join(dir, "..", "..")}
	if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				at = append(at, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, d := range at {
		if isUnfinished(d) {
			return fmt.Errorf("%s lists changes of a render that was stopped: files in %s are of two renders. Run "+
				"'tegen render -o %s' again; it completes them first", filepath.Join(d, journalFile), d, d)
		}
	}
	return nil
}

func isUnfinished(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }() // it was only read
	return (&writer{root: &disk{root}}).origin(journalFile) == journalOrigin
}
