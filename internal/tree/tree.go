// Package tree writes bundles below directories: a folder a job, a file a concern, a kustomization.yaml that lists
// them, and an inventory of all folders. Either every file is as the bundles say or the directories are as they were;
// after a crash in the middle, the next write completes it. One process at a time writes there. A file that tegen did
// not write is never touched, nor read beyond its first line: its presence in the way is an error. So is a link, which
// could lead anywhere. What an earlier render wrote is known by its first line.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/render"
)

const (
	kustomizationFile = "kustomization.yaml"
	signature         = "# Written by tegen from "
	ofJob             = "TrainingJob "

	// RestFolder is the folder of what an overlay holds beside jobs.
	RestFolder = "overlay-resources"
)

// Place is a directory and what it is to hold.
type Place struct {
	Dir     string
	Bundles []render.Bundle
	Rest    []byte // what an overlay holds beside them, for a folder of its own; nil where there is no overlay
	Behind  string // a digest of what changed those after tegen rendered them, "" for nothing
	Overlay string // the directory of that overlay, for the list of a Top
	Upgrade bool   // renders again what another version of tegen rendered of the same input, which restarts it
	Keep    bool   // keeps workloads whose origin is unclear, and records the present input
	Prune   bool   // removes the folders of other jobs, and that of an overlay that holds nothing beside jobs any more

	Generators []string // names of all that the program has, for Others.Foreign
}

// Others are the folders of a place with what tegen rendered of jobs that are not among its bundles, and RestFolder
// where its overlay holds nothing for it. Whether such a job is gone, or only not rendered this time, is unknown.
type Others struct {
	Removed []string // by Prune, or because the jobs' folders have the overlay's objects now
	Kept    []string // without Prune, or because they hold what tegen did not write

	Completed bool // a render that was stopped before

	Foreign []string // removed files of generators that the program lacks

	Held  []Restart // jobs whose folder stays as another version of tegen rendered it
	Moved []Restart // jobs whose input has changed, and tegen with it
}

// writer is one write to one directory. Paths in it are relative to that directory, and none leads out of it.
type writer struct {
	Place
	root    *disk // nil where the directory does not exist, and nothing is to be written
	plan    []*file
	others  []string        // folders of other jobs
	folders map[string]bool // that are planned
	created []string        // folders that were not there before
	release func(failed bool)

	completed bool // a render that was stopped

	held, moved, unclear []Restart
	listed               []string // files of folders that stay as they are
}

// file is one file to be written; content nil means that it goes.
type file struct {
	path    string
	content []byte
	exists  bool
	same    bool   // what is there is the content already
	staged  string // the temporary file beside it
}

// Write makes the files of bundles the state of a place, and removes those of an earlier render of the same jobs, all
// of them where a bundle has no files. The end of ctx leaves everything as it was, or comes too late.
func Write(ctx context.Context, place Place) (_ Others, err error) {
	w, err := open(ctx, place)
	if err != nil {
		return Others{}, err
	}
	defer func() { w.release(err != nil) }()
	if err := w.planAll(); err != nil {
		return Others{}, err
	}
	if err := w.commit(ctx, []*writer{w}); err != nil {
		return Others{}, err
	}
	return w.remaining(), nil
}

func planned(writers []*writer) error {
	var errs []error
	for _, w := range writers {
		errs = append(errs, w.planAll())
	}
	return errors.Join(errs...)
}

// remaining tells which folders of other jobs are still there.
func (w *writer) remaining() (o Others) {
	o.Completed, o.Held, o.Moved, o.Foreign = w.completed, w.held, w.moved, foreign(w)
	for _, folder := range w.others {
		if _, err := w.root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			o.Removed = append(o.Removed, folder)
		} else {
			o.Kept = append(o.Kept, folder)
		}
	}
	return o
}

// foreign are the files of rendered jobs that go and that no generator of the program makes.
func foreign(w *writer) (paths []string) {
	known := append(slices.Clone(w.Generators), strings.TrimSuffix(kustomizationFile, ".yaml"))
	for _, f := range w.plan {
		if f.content == nil && f.exists && w.folders[filepath.Dir(f.path)] && len(w.Generators) > 0 &&
			!slices.Contains(known, strings.TrimSuffix(filepath.Base(f.path), ".yaml")) {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// planAll compares what is there with what should be there.
func (w *writer) planAll() error {
	if err := w.checkLayout(); err != nil {
		return err
	}
	var errs []error
	w.folders = map[string]bool{}
	owner := map[string]string{}
	if len(w.Rest) > 0 {
		owner[RestFolder] = "the overlay's other resources"
	}
	for _, b := range w.Bundles {
		m := b.Summary
		origin := ofJob + m.Namespace + "/" + m.Name
		if other, ok := owner[m.Name]; ok {
			errs = append(errs, fmt.Errorf("%s and %s would share the folder %s: render them to different directories",
				other, origin, m.Name))
			continue
		}
		owner[m.Name] = origin
		errs = append(errs, w.planFolder(m.Name, m.Namespace, origin, b.Files))
	}
	if len(w.Rest) > 0 {
		errs = append(errs, w.upgradeRest())
		files := []render.File{{Concern: "resources", YAML: w.Rest}}
		errs = append(errs, w.planFolder(RestFolder, "", "an overlay", files))
	}
	if err := errors.Join(append(errs, w.refuseUnclear())...); err != nil {
		return err
	}
	return w.planRest()
}

// planFolder compares a folder with what it should hold. Its kustomization names the namespace for Argo CD, which
// creates that before it applies a job.
func (w *writer) planFolder(folder, namespace, origin string, files []render.File) error {
	w.folders[folder] = true
	header := headerOf(origin)
	var plan []*file
	var list strings.Builder
	wanted := map[string]bool{}
	add := func(name, text string) {
		wanted[name] = true
		plan = append(plan, &file{path: filepath.Join(folder, name), content: []byte(header + text)})
	}
	for _, f := range files {
		fmt.Fprintf(&list, "- %s.yaml\n", f.Concern)
		add(f.Concern+".yaml", string(f.YAML))
	}
	if len(files) > 0 {
		wanted[kustomizationFile] = true
	}
	stale, err := w.leftBehind(folder, origin)
	if err != nil {
		return err
	}
	for _, name := range stale {
		if !wanted[name] {
			plan = append(plan, &file{path: filepath.Join(folder, name)})
		}
	}
	if len(files) > 0 {
		head := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
		if namespace != "" {
			head += fmt.Sprintf("metadata:\n  namespace: %q\n", namespace)
		}
		body := head + "resources:\n" + list.String()
		add(kustomizationFile, w.seal(folder, contents(plan), body)+body)
	}
	for _, f := range plan {
		if err := w.inspect(f, origin); err != nil {
			return err // the others of the folder would say the same
		}
	}
	if job, isJob := strings.CutPrefix(origin, ofJob); isJob {
		if plan, err = w.upgrade(job, plan); err != nil {
			return err
		}
	}
	w.plan = append(w.plan, plan...)
	return nil
}

// contents are the files that a folder gets, by name.
func contents(plan []*file) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range plan {
		if f.content != nil {
			files[filepath.Base(f.path)] = f.content
		}
	}
	return files
}

// headerOf is the first line of every file, by which a later render finds it.
func headerOf(origin string) string { return signature + origin + "; a change made here is lost.\n" }
