package krm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// withPositions finds the errors again in the files as they were written, where they have lines. An error that comes
// from a patch has no line there.
func (k *kustomization) withPositions(sources []schema.Source, fallback schema.Errors) error {
	all := slices.Clone(sources)
	for _, path := range inputFiles(k.dir, k.types.Resources) {
		text, err := readRegular(path)
		// Of whatever version; what 'tegen install' renders has labels of the same domain, and is no input.
		if err != nil || !bytes.Contains(text, []byte("tegen.dev/v")) {
			continue
		}
		if len(sources) > 0 && bytes.Contains(text, []byte("kind: "+names.KindTrainingJob)) {
			continue // the sources replace these
		}
		all = append(all, schema.Source{Name: relative(path), Data: yamldoc.JoinSurrogates(text)})
	}
	if _, err := schema.LoadForGit(all); err != nil {
		return err
	}
	return withoutLines(fallback, "after the patches of "+filepath.Base(k.dir)+": ")
}

// inputFiles are the files among resources, those of the directories among them included.
func inputFiles(dir string, resources []string) []string {
	var out []string
	for _, name := range resources {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case !info.IsDir():
			out = append(out, path)
		default:
			if _, below, err := readFile(path); err == nil {
				out = append(out, inputFiles(path, below.Resources)...)
			}
		}
	}
	return out
}

// relative names a file as a person here would.
func relative(path string) string {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(short, filepath.Join("..", "..")) {
		return path
	}
	return short
}

// writtenJob is where a job was written, and its name after all kustomizations.
type writtenJob struct{ name, namespace, at string }

// fewDocuments are parsed one by one to find jobs: beyond them the sources are read as a whole.
const fewDocuments = 16

// place returns a function that finds the position of a job in the files as they were written, "" where they lack it.
// Nothing is read before the first call: most runs have no note to print. Of the sources, which may hold thousands of
// jobs, the first few calls parse those documents alone in which the job's name occurs.
func (k *kustomization) place(sources []schema.Source) func(name, namespace string) string {
	docs := sync.OnceValue(func() (all []yamldoc.Document) {
		for _, src := range sources {
			all = append(all, yamldoc.Split(src.Name, src.Data)...)
		}
		return all
	})
	below := sync.OnceValue(func() []writtenJob { return jobsBelow(nil, k.dir, &k.types) })
	parsed := 0
	// The jobs of documents that hold a text, and those of the overlay, by name; the first of a namespace counts. None
	// where too many documents hold it.
	read := func(text string) map[string][]writtenJob {
		var own []writtenJob
		for _, doc := range docs() {
			if !bytes.Contains(doc.Text, []byte(text)) {
				continue
			}
			if parsed++; text != "" && parsed > fewDocuments {
				return nil
			}
			own = append(own, jobIn(doc)...)
		}
		of := map[string][]writtenJob{}
		for _, s := range slices.Concat(withNames(own, &k.types), below()) {
			of[s.name] = append(of[s.name], s)
		}
		return of
	}
	all := sync.OnceValue(func() map[string][]writtenJob { return read("") })
	var mu sync.Mutex
	find := func(name string) []writtenJob {
		mu.Lock()
		defer mu.Unlock()
		short := strings.TrimSuffix(strings.TrimPrefix(name, k.types.NamePrefix), k.types.NameSuffix)
		if parsed <= fewDocuments {
			if named := read(short)[name]; len(named) > 0 {
				return named
			} // it may be written with escapes
		}
		return all()[name]
	}
	return func(name, namespace string) string {
		named := find(name)
		for _, s := range named {
			if s.namespace == namespace {
				return s.at
			}
		}
		if len(named) == 1 { // its namespace may be a patch's, or an Environment's
			return named[0].at
		}
		return ""
	}
}

// jobsBelow adds the jobs in the files of a kustomization, and of those below it, to those that a component is for.
func jobsBelow(all []writtenJob, dir string, t *types.Kustomization) []writtenJob {
	for i, entry := range slices.Concat(t.Resources, t.Components) {
		path := filepath.Join(dir, entry)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			if text, err := readRegular(path); err == nil {
				all = append(all, jobsIn(relative(path), yamldoc.JoinSurrogates(text))...)
			}
			continue
		}
		_, below, err := readFile(path)
		switch {
		case err != nil:
		case i < len(t.Resources):
			all = append(all, jobsBelow(nil, path, &below)...)
		default:
			all = jobsBelow(all, path, &below)
		}
	}
	return withNames(all, t)
}

// withNames gives jobs the names that a kustomization gives them.
func withNames(all []writtenJob, t *types.Kustomization) []writtenJob {
	for i := range all {
		all[i].name = t.NamePrefix + all[i].name + t.NameSuffix
		if t.Namespace != "" {
			all[i].namespace = t.Namespace
		}
	}
	return all
}

// jobsIn are the jobs of a file; documents that cannot be read are left out.
func jobsIn(file string, text []byte) (all []writtenJob) {
	if !bytes.Contains(text, []byte(names.APIVersion)) {
		return nil
	}
	for _, doc := range yamldoc.Split(file, text) {
		all = append(all, jobIn(doc)...)
	}
	return all
}

// jobIn is the job that a document is, if it is one.
func jobIn(doc yamldoc.Document) []writtenJob {
	short, ok := outline(doc)
	n, err := short.Parse()
	if err != nil || n == nil || !isInput(n) || kind(n) != names.KindTrainingJob {
		return nil
	}
	line, column := n.Line, n.Column
	if ok { // the first key may be one that was left out
		line, column = doc.FirstLine(), 1
	}
	home := namespace(n)
	if home == "" {
		home = "default"
	}
	return []writtenJob{{name(n), home, fmt.Sprintf("%s:%d:%d", doc.Stream, line, column)}}
}
