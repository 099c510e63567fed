package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Top is a directory of places, a folder for each of several overlays. A file in it lists those that were rendered
// together: no other folder is named or removed, since somebody may render places one by one.
type Top struct {
	Dir   string
	Prune bool // removes places whose overlays are gone
}

// Unnamed are the listed places of a Top that were not rendered this time.
type Unnamed struct {
	Removed []string // by Prune
	Gone    []string // would be, with Prune
	Kept    []Listed // their overlays are there, or may be

	Completed bool // a render that was stopped before

	list []Listed // Gone and Kept
}

const (
	topFile   = "tegen-places.txt"
	topOrigin = "the overlays of this directory"
)

// IsTop says whether a directory holds places that were rendered together.
func IsTop(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }() // it was only read
	return (&writer{root: &disk{root}}).origin(topFile) == topOrigin
}

// NotOnePlace says of such a directory that it is not one place.
func NotOnePlace(dir string) error {
	return fmt.Errorf("reading %s: it holds a directory of jobs for each overlay, as its %s lists: name one of them",
		dir, topFile)
}

// Write is Write of places that are folders of the directory, and of its list of them: of all or of none.
func (t Top) Write(ctx context.Context, places ...Place) (_ []Others, u Unnamed, err error) {
	top, err := open(ctx, Place{Dir: t.Dir})
	if err != nil {
		return nil, u, err
	}
	defer func() { top.release(err != nil) }()
	if u, err = t.unnamed(top, places); err != nil {
		return nil, u, err
	}
	writers, release, err := openAll(ctx, slices.Concat(places, t.emptied(u)))
	if err != nil {
		return nil, u, err
	}
	defer func() { release(err != nil) }()
	if err := errors.Join(planned(writers), t.plan(top, places, u)); err != nil {
		return nil, u, err
	}
	if err := top.commit(ctx, append(slices.Clone(writers), top)); err != nil {
		return nil, u, err
	}
	u.Completed = top.completed
	others := make([]Others, len(places))
	for i := range places {
		others[i] = writers[i].remaining()
	}
	return others, u, nil
}

// Check is Check of places that are folders of the directory, and of its list of them.
func (t Top) Check(out io.Writer, places ...Place) (int, []Others, error) {
	top := &writer{Place: Place{Dir: t.Dir}}
	root, err := os.OpenRoot(t.Dir)
	switch {
	case err == nil:
		top.root = &disk{root}
		defer func() { _ = root.Close() }() // it was only read
	case !errors.Is(err, fs.ErrNotExist):
		return 0, nil, fmt.Errorf("opening %s: %w", t.Dir, err)
	}
	if err := Unfinished(t.Dir); err != nil {
		return 0, nil, err
	}
	u, err := t.unnamed(top, places)
	if err != nil {
		return 0, nil, err
	}
	differ, others, err := Check(out, slices.Concat(places, t.emptied(u))...)
	if err != nil {
		return 0, nil, err
	}
	if err := t.plan(top, places, u); err != nil {
		return 0, nil, err
	}
	n, err := top.compare(out)
	return differ + n, others[:len(places)], err
}

// unnamed sorts the listed places that are not rendered this time. One that is no place any more is forgotten. A link
// is none: it could lead to another place, or anywhere.
func (t Top) unnamed(top *writer, places []Place) (u Unnamed, err error) {
	for _, p := range places {
		name := filepath.Base(p.Dir)
		if info, err := top.lstat(name); err == nil && !info.IsDir() {
			return u, top.inTheWay(name, info.Mode())
		}
	}
	if top.root == nil || top.origin(topFile) != topOrigin {
		return u, nil
	}
	text, err := top.read(topFile)
	if err != nil {
		return u, err
	}
	list := parseList(string(text))
	for _, l := range list {
		name := l.Name
		named := slices.ContainsFunc(places, func(p Place) bool { return filepath.Base(p.Dir) == name })
		switch {
		case named || name == "." || !filepath.IsLocal(name) || filepath.Base(name) != name: // of somebody's editing
		case !top.isDir(name) || !top.isPlace(name):
		default:
			t.sort(&u, l, list, places)
		}
	}
	return u, nil
}

func (w *writer) isDir(path string) bool {
	info, err := w.lstat(path)
	return err == nil && info.IsDir()
}

// emptied are the places that go: directories that are to hold nothing of tegen's.
func (t Top) emptied(u Unnamed) (places []Place) {
	for _, name := range u.Removed {
		places = append(places, Place{Dir: filepath.Join(t.Dir, name), Rest: []byte{}, Prune: true})
	}
	return places
}

// plan lists the places that there are in the end.
func (t Top) plan(top *writer, places []Place, u Unnamed) error {
	list := slices.Clone(u.list)
	for _, p := range places {
		list = append(list, Listed{filepath.Base(p.Dir), t.relative(p.Overlay)})
	}
	f := &file{path: topFile, content: []byte(headerOf(topOrigin) + printList(list))}
	if err := top.inspect(f, topOrigin); err != nil {
		return err
	}
	top.plan = append(top.plan, f)
	return nil
}
