package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// temporary is what a file is called that is not in place yet, or no longer.
var temporary = lazy.Regexp(`^\.[a-z0-9-]+\.(yaml|txt)\.tegen-((new|old)-)?[0-9]+$`)

// leftBehind returns the files of a folder that carry the signature of a job.
func (w *writer) leftBehind(folder, origin string) ([]string, error) {
	info, err := w.lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
	case !info.IsDir():
		return nil, w.inTheWay(folder, info.Mode())
	}
	entries, err := fs.ReadDir(w.root.FS(), folder)
	if err != nil {
		return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular():
		case strings.HasSuffix(name, ".yaml"):
			first, err := w.firstLine(filepath.Join(folder, name))
			if err != nil {
				return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
			}
			if strings.HasPrefix(first, signature+origin+";") {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// inspect finds what is there now, and refuses to replace what somebody else wrote.
func (w *writer) inspect(f *file, origin string) error {
	info, err := w.lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading what is there: %w", err)
	case !info.Mode().IsRegular():
		return w.inTheWay(f.path, info.Mode())
	}
	f.exists = true
	if f.content == nil {
		return nil
	}
	first, err := w.firstLine(f.path)
	if err != nil {
		return fmt.Errorf("reading what is there: %w", err)
	}
	from, ours := strings.CutPrefix(first, signature)
	switch {
	case strings.HasPrefix(from, origin+";"):
		f.same, err = w.holds(f, info.Size())
		return err
	case ours:
		from, _, _ = strings.Cut(from, ";")
		return fmt.Errorf("%s was rendered from %s: remove that folder, or choose another directory", w.name(f.path),
			from)
	}
	return fmt.Errorf("%s was not written by tegen: move it, or choose another directory", w.name(f.path))
}

// inTheWay is the error of what is neither a file nor a directory where one is needed, or the wrong one of both.
func (w *writer) inTheWay(path string, mode fs.FileMode) error {
	what := "neither a file nor a directory"
	switch {
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link, which could lead out of the directory"
	case mode.IsDir():
		what = "a directory"
	case mode.IsRegular():
		what = "a file"
	}
	return fmt.Errorf("%s is %s, and was not written by tegen: move it, or choose another directory", w.name(path),
		what)
}

// firstLine is what a file begins with, of which a signature is a small part: the rest of somebody's file may be large.
func (w *writer) firstLine(path string) (string, error) {
	f, err := w.root.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	first, _, _ := strings.Cut(string(head[:n]), "\n")
	return first, nil
}

// holds says whether a file has its content already. No more of it is read than that is long.
func (w *writer) holds(f *file, size int64) (bool, error) {
	if size != int64(len(f.content)) {
		return false, nil
	}
	there, err := w.root.Open(f.path)
	if err != nil {
		return false, fmt.Errorf("reading what is there: %w", err)
	}
	defer func() { _ = there.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(there, size+1))
	if err != nil {
		return false, fmt.Errorf("reading what is there: %w", err)
	}
	return bytes.Equal(text, f.content), nil
}

// name is a path for messages.
func (w *writer) name(path string) string { return filepath.Join(w.Dir, path) }

func (w *writer) lstat(path string) (fs.FileInfo, error) {
	if w.root == nil {
		return nil, fs.ErrNotExist
	}
	return w.root.Lstat(path)
}
