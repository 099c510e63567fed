// Package tree writes bundles below a directory: a folder a job, a file a concern, and a kustomization.yaml that lists
// them, which is also the record of what an earlier render wrote. Either every file is as the bundles say or the
// directory is as it was, and one process at a time writes there. A file that tegen did not write is never touched, nor
// read beyond its first line: its presence in the way is an error. So is a link, which could lead anywhere.
package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tegen-dev/tegen/internal/render"
)

const (
	kustomizationFile = "kustomization.yaml"
	signature         = "# Written by tegen from "
	restFolder        = "overlay-resources"
)

// writer is one write to one directory. Paths in it are relative to that directory, and none leads out of it.
type writer struct {
	dir     string
	root    *os.Root
	plan    []*file
	created []string // folders that were not there before
}

// file is one file to be written; content nil means that it goes.
type file struct {
	path    string
	content []byte
	exists  bool
	same    bool   // what is there is the content already
	staged  string // the temporary file beside it, "" once it is in place
	backup  string // what was there, "" where nothing was
	placed  bool
}

// Write makes the files of bundles the state of dir, and removes those of an earlier render of the same jobs, all of
// them where a bundle has no files. rest, what an overlay holds beside them, goes to a folder of its own; it is nil
// where there is no overlay, and that folder is left alone. Until the last file is in place, the end of ctx puts
// everything back.
func Write(ctx context.Context, dir string, bundles []render.Bundle, rest []byte) error {
	w, release, err := open(ctx, dir)
	if err != nil {
		return err
	}
	err = w.write(ctx, bundles, rest)
	release(err != nil)
	return err
}

func (w *writer) write(ctx context.Context, bundles []render.Bundle, rest []byte) error {
	if err := w.planAll(bundles, rest); err != nil {
		return err
	}
	err := w.stage(ctx)
	if err == nil {
		err = w.commit(ctx)
	}
	w.clean(err != nil)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("writing %s: %w: everything in it is as it was", w.dir, err)
	}
	return err
}

func (w *writer) planAll(bundles []render.Bundle, rest []byte) error {
	var errs []error
	owner := map[string]string{}
	if len(rest) > 0 {
		owner[restFolder] = "the overlay's other resources"
	}
	for _, b := range bundles {
		m := b.Job.Metadata
		origin := "TrainingJob " + m.Namespace + "/" + m.Name
		if other, ok := owner[m.Name]; ok {
			errs = append(errs, fmt.Errorf("%s and %s would share the folder %s: render them to different directories",
				other, origin, m.Name))
			continue
		}
		owner[m.Name] = origin
		errs = append(errs, w.planFolder(m.Name, origin, b.Files))
	}
	if rest != nil {
		var files []render.File
		if len(rest) > 0 {
			files = []render.File{{Concern: "resources", YAML: rest}}
		}
		errs = append(errs, w.planFolder(restFolder, "an overlay", files))
	}
	return errors.Join(errs...)
}

// planFolder compares a folder with what it should hold. The kustomization comes last: whatever interrupts the work, it
// never lists fewer files than an apply of the whole folder would find.
func (w *writer) planFolder(folder, origin string, files []render.File) error {
	header := signature + origin + "; a change made here is lost.\n"
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
		add(kustomizationFile, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"+
			list.String())
	}
	for _, f := range plan {
		if err := w.inspect(f, origin); err != nil {
			return err // the others of the folder would say the same
		}
	}
	w.plan = append(w.plan, plan...)
	return nil
}
