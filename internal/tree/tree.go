// Package tree writes bundles below a directory: a folder a job, a file a concern, and a kustomization.yaml that lists
// them, which is also the record of what an earlier render wrote. Either every file is as the bundles say or the
// directory is as it was. A file that tegen did not write is never touched: its presence in the way is an error.
package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/render"
)

const (
	kustomizationFile = "kustomization.yaml"
	signature         = "# Written by tegen from "
	restFolder        = "overlay-resources"
)

// file is one file to be written; content nil means that it goes.
type file struct {
	path    string
	content []byte
	before  []byte // nil where it did not exist
	staged  string // the temporary file beside it
}

// Write makes the files of bundles the state of dir, and removes those of an earlier render of the same jobs, all of
// them where a bundle has no files. rest, what an overlay holds beside them, goes to a folder of its own; it is nil
// where there is no overlay, and that folder is left alone.
func Write(dir string, bundles []render.Bundle, rest []byte) error {
	plan, err := planAll(dir, bundles, rest)
	if err != nil {
		return err
	}
	made, err := stage(plan)
	if err == nil {
		err = commit(plan)
	}
	if err != nil {
		discard(plan, made)
		return err
	}
	for _, f := range plan {
		if f.content == nil {
			_ = os.Remove(filepath.Dir(f.path)) // if it was the last; a folder that holds anything else stays
		}
	}
	return nil
}

func planAll(dir string, bundles []render.Bundle, rest []byte) ([]*file, error) {
	var plan []*file
	var errs []error
	owner := map[string]string{}
	if len(rest) > 0 {
		owner[restFolder] = "the overlay's other resources"
	}
	for _, b := range bundles {
		m := b.Job.Metadata
		origin := "TrainingJob " + m.Namespace + "/" + m.Name
		if other, ok := owner[m.Name]; ok {
			errs = append(errs, fmt.Errorf("%s and %s would share the folder %s: render them to different directories", other, origin, m.Name))
			continue
		}
		owner[m.Name] = origin
		files, err := planFolder(filepath.Join(dir, m.Name), origin, b.Files)
		plan, errs = append(plan, files...), append(errs, err)
	}
	if rest != nil {
		var files []render.File
		if len(rest) > 0 {
			files = []render.File{{Concern: "resources", YAML: rest}}
		}
		planned, err := planFolder(filepath.Join(dir, restFolder), "an overlay", files)
		plan, errs = append(plan, planned...), append(errs, err)
	}
	return plan, errors.Join(errs...)
}

// planFolder compares a folder with what it should hold. The kustomization comes last: whatever interrupts the work, it
// never lists fewer files than an apply of the whole folder would find.
func planFolder(dir, origin string, files []render.File) ([]*file, error) {
	header := signature + origin + "; a change made here is lost.\n"
	var plan []*file
	var list strings.Builder
	wanted := map[string]bool{}
	add := func(name, text string) {
		wanted[name] = true
		plan = append(plan, &file{path: filepath.Join(dir, name), content: []byte(header + text)})
	}
	for _, f := range files {
		fmt.Fprintf(&list, "- %s.yaml\n", f.Concern)
		add(f.Concern+".yaml", string(f.YAML))
	}
	if len(files) > 0 {
		wanted[kustomizationFile] = true
	}
	stale, err := leftBehind(dir, origin)
	if err != nil {
		return nil, err
	}
	for _, name := range stale {
		if !wanted[name] {
			plan = append(plan, &file{path: filepath.Join(dir, name)})
		}
	}
	if len(files) > 0 {
		add(kustomizationFile, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"+list.String())
	}
	for _, f := range plan {
		if err := f.look(origin); err != nil {
			return nil, err // the others of the folder would say the same
		}
	}
	return plan, nil
}

// leftBehind returns the files of a folder that carry the signature of a job, and temporary files of a render that was
// killed.
func leftBehind(dir, origin string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular():
		case temporary.MatchString(name):
			names = append(names, name)
		case strings.HasSuffix(name, ".yaml"):
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
			}
			if bytes.HasPrefix(text, []byte(signature+origin+";")) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// temporary is what stage calls a file that is not in place yet.
var temporary = regexp.MustCompile(`^\.[a-z-]+\.yaml\.tegen-[0-9]+$`)

// look reads what is there now, and refuses to replace what somebody else wrote.
func (f *file) look(origin string) error {
	text, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading what is there: %w", err)
	}
	f.before = text
	first, _, _ := strings.Cut(string(text), "\n")
	from, ours := strings.CutPrefix(first, signature)
	switch {
	case f.content == nil || strings.HasPrefix(from, origin+";"):
		return nil
	case ours:
		from, _, _ = strings.Cut(from, ";")
		return fmt.Errorf("%s was rendered from %s: remove that folder, or choose another directory", f.path, from)
	}
	return fmt.Errorf("%s was not written by tegen: move it, or choose another directory", f.path)
}

// stage writes every new content to a temporary file beside its place, and returns the directories that it made.
func stage(plan []*file) (made []string, err error) {
	for _, f := range plan {
		if f.content == nil || f.before != nil && bytes.Equal(f.content, f.before) {
			continue
		}
		dirs, err := mkdir(filepath.Dir(f.path))
		made = append(made, dirs...)
		if err != nil {
			return made, fmt.Errorf("making a directory: %w", err)
		}
		if err := f.stage(); err != nil {
			return made, fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	return made, nil
}

func (f *file) stage() error {
	tmp, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+".tegen-*")
	if err != nil {
		return err
	}
	f.staged = tmp.Name()
	_, err = tmp.Write(f.content)
	if err == nil {
		err = tmp.Chmod(0o644) // CreateTemp's 0600 would follow into git checkouts of others
	}
	return errors.Join(err, tmp.Close())
}

// mkdir is os.MkdirAll that says which directories are new.
func mkdir(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	return missing, os.MkdirAll(dir, 0o755)
}

// commit renames what is staged into place and removes what is stale. On an error it puts back what it changed.
func commit(plan []*file) error {
	for i, f := range plan {
		var err error
		switch {
		case f.staged != "":
			err = os.Rename(f.staged, f.path)
		case f.content == nil && f.before != nil:
			err = os.Remove(f.path)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("putting %s in place: %w", f.path, err), restore(plan[:i]))
		}
	}
	return nil
}

func restore(done []*file) error {
	var errs []error
	for _, f := range done {
		if f.before == nil && f.staged != "" {
			errs = append(errs, os.Remove(f.path))
		} else if f.before != nil {
			errs = append(errs, os.WriteFile(f.path, f.before, 0o644))
		}
	}
	return errors.Join(errs...)
}

// discard removes what stage left: temporary files, and directories that nothing else came into.
func discard(plan []*file, made []string) {
	for _, f := range plan {
		if f.staged != "" {
			_ = os.Remove(f.staged) // gone already where it was renamed
		}
	}
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) }) // deepest first
	for _, dir := range made {
		_ = os.Remove(dir)
	}
}
