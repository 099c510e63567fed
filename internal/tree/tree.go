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
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

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

// Write makes the files of bundles the state of dir, and removes those of an earlier render of the same jobs. rest
// goes to a folder of its own.
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
	if len(rest) > 0 {
		files, err := planFolder(filepath.Join(dir, restFolder), "an overlay", []render.File{{Concern: "resources", YAML: rest}})
		plan, errs = append(plan, files...), append(errs, err)
	}
	return plan, errors.Join(errs...)
}

// planFolder compares a folder with what it should hold. The kustomization comes last, so that it never lists a file
// that is not there yet.
func planFolder(dir, origin string, files []render.File) ([]*file, error) {
	header := signature + origin + "; a change made here is lost.\n"
	wanted := map[string]bool{kustomizationFile: true}
	var plan []*file
	var list strings.Builder
	for _, f := range files {
		name := f.Concern + ".yaml"
		wanted[name] = true
		fmt.Fprintf(&list, "- %s\n", name)
		plan = append(plan, &file{path: filepath.Join(dir, name), content: append([]byte(header), f.YAML...)})
	}
	plan = append(plan, &file{
		path:    filepath.Join(dir, kustomizationFile),
		content: []byte(header + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n" + list.String()),
	})
	stale, err := written(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range stale {
		if !wanted[name] {
			plan = append(plan, &file{path: filepath.Join(dir, name)})
		}
	}
	var errs []error
	for _, f := range plan {
		errs = append(errs, f.look(origin))
	}
	return plan, errors.Join(errs...)
}

// written returns the files that an earlier render listed.
func written(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, kustomizationFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.HasPrefix(text, []byte(signature)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what an earlier render wrote: %w", err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, kustomizationFile), err)
	}
	var names []string
	for _, r := range k.Resources {
		if r == filepath.Base(r) && strings.HasSuffix(r, ".yaml") { // anything else was put there by somebody
			names = append(names, r)
		}
	}
	return names, nil
}

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
	switch {
	case strings.HasPrefix(first, signature+origin+";"):
		return nil
	case f.content == nil: // listed, but not ours any more: leave it
		f.content = text
		return nil
	case strings.HasPrefix(first, signature):
		return fmt.Errorf("%s was rendered from another job (%q): remove it, or choose another directory", f.path, strings.TrimPrefix(first, "# "))
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
