package krm

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// listing is what the kustomizations of an overlay list.
type listing struct {
	folders map[string]*folder // by directory
	files   map[string]bool    // that any field names, such as resources and patches
	jobs    map[string]bool    // directories with a job that is listed
}

// unlisted notes the files of jobs that tegen and kustomize disagree on. A file beside those of the overlay that no
// kustomization lists is left out by kustomize, and by tegen too where no files are given, but not where its directory
// is given. Conversely, an overlay's job that is not among the given files is left out where others of the overlay are
// given. overlay is the name under which the overlay was given.
func (k *kustomization) unlisted(overlay string, sources []schema.Source) (notes finding.List) {
	l := k.listing()
	if len(sources) == 0 {
		for _, path := range l.beside() {
			notes = append(notes, l.note(path, overlay, "its jobs are not rendered"))
		}
		return notes
	}
	given := map[string]bool{}
	some := false
	for _, src := range sources {
		path := real(src.Name)
		if !filepath.IsAbs(path) || !holdsJob(src.Name, src.Data) {
			continue // standard input
		}
		given[path] = true
		some = some || l.files[path]
		if !l.files[path] && l.covers(filepath.Dir(path)) {
			notes = append(notes, l.note(path, overlay, fmt.Sprintf("'kustomize build %s' and 'tegen render --overlay "+
				"%s' leave its jobs out", overlay, overlay)))
		}
	}
	if !some || len(sources) == 1 { // other jobs than the overlay's, or one of them
		return notes
	}
	for _, path := range inputFiles(k.dir, &k.types) {
		if text, err := readRegular(path); err == nil && !given[path] && holdsJob(path, text) {
			notes = append(notes, finding.Finding{
				Rule: "overlay/unlisted", Level: finding.Note, File: relative(path), Line: 1, Column: 1,
				Message: fmt.Sprintf("'kustomize build %s' renders its jobs, and they are not among the given files: "+
					"name this file too, or no files", overlay),
			})
		}
	}
	return notes
}

func (l *listing) note(path, overlay, consequence string) finding.Finding {
	dir := filepath.Dir(path)
	for l.folders[dir] == nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	entry, file := filepath.Base(path), "kustomization.yaml"
	if f := l.folders[dir]; f != nil {
		file = filepath.Join(f.dir, f.file)
		if rel, err := filepath.Rel(f.dir, path); err == nil {
			entry = rel
		}
		for below := filepath.Dir(path); below != dir; below = filepath.Dir(below) {
			if hasKustomization(below) { // kustomize takes the directory, and no file of it
				entry, _ = filepath.Rel(dir, below)
			}
		}
	}
	return finding.Finding{
		Rule: "overlay/unlisted", Level: finding.Note, File: relative(path), Line: 1, Column: 1,
		Message: fmt.Sprintf("no kustomization of %s lists this file: %s: add %s to resources in %s", overlay,
			consequence, entry, relative(file)),
	}
}

// listing reads all kustomizations of the overlay.
func (k *kustomization) listing() *listing {
	l := &listing{map[string]*folder{}, map[string]bool{}, map[string]bool{}}
	top := &folder{dir: k.dir, file: k.file, types: k.types}
	for _, f := range top.withBelow(map[string]bool{k.dir: true}) {
		l.folders[f.dir] = f
		text, err := sigsyaml.Marshal(f.types)
		var fields any
		if err == nil {
			err = sigsyaml.Unmarshal(text, &fields)
		}
		if err != nil {
			continue // kustomize reported it
		}
		l.list(f.dir, fields)
	}
	for path := range l.files {
		if text, err := readRegular(path); err == nil && holdsJob(path, text) {
			l.jobs[filepath.Dir(path)] = true
		}
	}
	return l
}

// list adds the files that a value of a kustomization names, as patches and generators do too: NAME or KEY=NAME.
func (l *listing) list(dir string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			l.list(dir, v)
		}
	case []any:
		for _, v := range value {
			l.list(dir, v)
		}
	case string:
		if strings.Contains(value, "\n") {
			return
		}
		_, after, _ := strings.Cut(value, "=")
		for _, name := range []string{value, after} {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if info, wrong := os.Stat(path); err == nil && wrong == nil && info.Mode().IsRegular() {
				l.files[path] = true
			}
		}
	}
}

// covers reports whether a directory is one of the overlay's: it has one of its kustomizations, or it is below one with
// a job that is listed.
func (l *listing) covers(dir string) bool {
	if l.folders[dir] != nil {
		return true
	}
	for at := dir; ; at = filepath.Dir(at) {
		if l.jobs[at] {
			return true
		}
		if l.folders[at] != nil || at == filepath.Dir(at) {
			return false
		}
	}
}

// beside are the files of jobs in the directories of the overlay that are not listed. Directories with a kustomization
// of their own are another's, unless the overlay has that too.
func (l *listing) beside() (found []string) {
	for dir := range l.folders {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read is no job
			switch {
			case err != nil:
				return fs.SkipDir
			case e.IsDir():
				if path != dir && (strings.HasPrefix(e.Name(), ".") || hasKustomization(path) || !l.covers(path)) {
					return fs.SkipDir
				}
			case !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)), !e.Type().IsRegular(),
				l.files[path], slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name()):
			default:
				if text, err := readRegular(path); err == nil && holdsJob(path, text) {
					found = append(found, path)
				}
			}
			return nil
		})
	}
	slices.Sort(found)
	return found
}

func hasKustomization(dir string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// holdsJob reports whether a file has a job in it, or what may be one.
func holdsJob(name string, text []byte) bool {
	if len(text) > schema.MaxFile || !bytes.Contains(text, []byte("Job")) {
		return false
	}
	return slices.ContainsFunc(yamldoc.Split(name, text), func(doc yamldoc.Document) bool {
		h, _, known := headIn(doc)
		return known && (h.Class() == dochead.Input && h.Kind == names.KindTrainingJob ||
			h.Class() == dochead.Broken && h.APIVersion != "" && h.Kind != "")
	})
}
