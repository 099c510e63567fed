package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
)

// Check prints what Write would change in places, and returns of how many files. It writes to none of them and takes no
// lock. The answer has what is held and moved of each place.
func Check(out io.Writer, places ...Place) (differ int, others []Others, err error) {
	for _, p := range places {
		w := &writer{Place: p}
		root, err := os.OpenRoot(p.Dir)
		switch {
		case err == nil:
			w.root = &disk{root}
			defer func() { _ = root.Close() }() // it was only read
		case !errors.Is(err, fs.ErrNotExist):
			return 0, nil, fmt.Errorf("opening %s: %w", p.Dir, err)
		}
		if err := Unfinished(p.Dir); err != nil {
			return 0, nil, err
		}
		if err := w.planAll(); err != nil {
			return 0, nil, err
		}
		n, err := w.compare(out)
		if err != nil {
			return 0, nil, err
		}
		differ += n
		others = append(others, Others{Held: w.held, Moved: w.moved, Foreign: foreign(w)})
	}
	return differ, others, nil
}

// compare prints the difference of each file, but a folder that is new or goes as one line, and what a render left that
// was stopped before it changed anything.
func (w *writer) compare(out io.Writer) (differ int, err error) {
	left, err := w.leftovers()
	if err != nil {
		return 0, err
	}
	for _, path := range left {
		differ++
		if _, err := fmt.Fprintf(out, "%s: is left of a render that was stopped\n", w.name(path)); err != nil {
			return 0, err
		}
	}
	told := map[string]bool{}
	for _, f := range w.plan {
		if f.same || f.content == nil && !f.exists {
			continue
		}
		differ++
		folder := filepath.Dir(f.path)
		switch {
		case told[folder]:
		case f.exists && f.content != nil:
			err = w.unified(out, f)
		case folder != "." && w.alike(folder, f.exists):
			told[folder] = true
			what := presence(f)
			if _, missing := w.lstat(folder); !f.exists && missing == nil { // with files of somebody else
				what = "holds nothing of what is rendered"
			}
			_, err = fmt.Fprintf(out, "%s: %s\n", w.name(folder), what)
		default:
			_, err = fmt.Fprintf(out, "%s: %s\n", w.name(f.path), presence(f))
		}
		if err != nil {
			return 0, err
		}
	}
	return differ, nil
}

// alike says whether all files of a folder go, or all are new.
func (w *writer) alike(folder string, exist bool) bool {
	for _, f := range w.plan {
		if filepath.Dir(f.path) == folder && (f.exists != exist || (f.content == nil) != exist) {
			return false
		}
	}
	return true
}

func presence(f *file) string {
	if f.exists {
		return "is there, and is not rendered any more"
	}
	return "is not there"
}

// unified prints the difference in the form of diff -u.
func (w *writer) unified(out io.Writer, f *file) error {
	there, err := w.read(f.path)
	if err != nil {
		return err
	}
	text := diff.Diff(w.name(f.path), there, w.name(f.path)+" as rendered", f.content)
	_, text, _ = bytes.Cut(text, []byte("\n")) // the command of which it would be the output
	_, err = out.Write(text)
	return err
}
