package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// stage writes every new content to a temporary file beside its place.
func (w *writer) stage(ctx context.Context) error {
	for _, f := range w.plan {
		if f.content == nil || f.same {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		folder := filepath.Dir(f.path)
		switch err := w.root.Mkdir(folder, 0o777); {
		case err == nil:
			w.created = append(w.created, folder)
		case !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("making a directory: %w", err)
		}
		if err := w.stageFile(f); err != nil {
			return fmt.Errorf("writing %s: %w", w.name(f.path), err)
		}
	}
	return nil
}

// stageFile leaves the mode to the user's umask, as any other program that makes files does.
func (w *writer) stageFile(f *file) error {
	name, tmp, err := w.temporary(f.path, "new")
	if err != nil {
		return err
	}
	f.staged = name
	_, err = tmp.Write(f.content)
	return errors.Join(err, tmp.Close())
}

// temporary makes a file beside a path that no one has.
func (w *writer) temporary(path, what string) (string, *os.File, error) {
	for i := 1; ; i++ {
		name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tegen-"+what+"-"+strconv.Itoa(i))
		f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return name, f, err
		}
	}
}

// commit renames what is staged into place and removes what is stale. On an error it puts back what it changed.
func (w *writer) commit(ctx context.Context) error {
	for i, f := range w.plan {
		err := ctx.Err()
		if err != nil {
			err = context.Cause(ctx)
		} else if err = w.place(f); err != nil {
			err = fmt.Errorf("putting %s in place: %w", w.name(f.path), err)
		}
		if err != nil {
			return errors.Join(err, w.restore(w.plan[:i+1]))
		}
	}
	return nil
}

// place takes a file's step, having put aside what is there. A file that goes is moved; one that is replaced is never
// missing, where the file system knows links.
func (w *writer) place(f *file) error {
	if f.same || f.content == nil && !f.exists {
		return nil
	}
	if f.exists {
		name, tmp, err := w.temporary(f.path, "old")
		if err != nil {
			return err
		}
		if err := errors.Join(tmp.Close(), w.root.Remove(name)); err != nil {
			return err
		}
		linked := f.content != nil && w.root.Link(f.path, name) == nil
		if !linked {
			if err := w.root.Rename(f.path, name); err != nil {
				return err
			}
		}
		f.backup = name
	}
	if f.content == nil {
		return nil
	}
	if err := w.root.Rename(f.staged, f.path); err != nil {
		return err
	}
	f.staged, f.placed = "", true
	return nil
}

// restore takes back the steps of files, the last one first.
func (w *writer) restore(done []*file) error {
	var errs []error
	for _, f := range slices.Backward(done) {
		switch {
		case f.backup != "":
			errs = append(errs, w.root.Rename(f.backup, f.path))
			// Where both are still one file, which has two names, renaming does nothing.
			if err := w.root.Remove(f.backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			f.backup = ""
		case f.placed:
			errs = append(errs, w.root.Remove(f.path))
		}
	}
	return errors.Join(errs...)
}

// clean removes temporary files and empty folders: those created for nothing, those whose last file went.
// One that holds anything else stays. What cannot be removed the next render finds.
func (w *writer) clean(failed bool) {
	for _, f := range w.plan {
		for _, name := range []string{f.staged, f.backup} {
			if name != "" {
				_ = w.root.Remove(name)
			}
		}
		if folder := filepath.Dir(f.path); !failed && f.content == nil && folder != "." {
			_ = w.root.Remove(folder)
		}
	}
	if failed {
		for _, folder := range w.created {
			_ = w.root.Remove(folder)
		}
	}
}
