package krm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// withPositions finds the errors again in the files as they were written, where they have lines. An error that comes
// from a patch has no line there.
func (k *kustomization) withPositions(sources []schema.Source, fallback schema.Errors) error {
	all, _ := k.inputs(sources)
	_, err := schema.LoadForGit(all, k.opts...)
	var mistakes schema.Errors
	switch {
	case errors.As(err, &mistakes):
		if placed := k.placed(mistakes, fallback); placed != nil {
			return placed
		} // a patch makes all of the mistakes
	case err != nil:
		return err
	}
	return withoutLines(fallback, "after the patches of "+filepath.Base(k.dir)+": ")
}

// placed are the mistakes of jobs as they are written, without those violations of a policy that patches correct, and
// with those that patches make.
func (k *kustomization) placed(written, fallback schema.Errors) error {
	violation := func(e schema.Error) bool { return e.Rule == "policy" }
	among := func(e schema.Error, all schema.Errors) bool {
		return slices.ContainsFunc(all, func(f schema.Error) bool { return f.Path == e.Path && f.Msg == e.Msg })
	}
	onlyViolations := !slices.ContainsFunc(fallback, func(e schema.Error) bool { return !violation(e) })
	kept := slices.DeleteFunc(slices.Clone(written), func(e schema.Error) bool {
		return (violation(e) || onlyViolations) && !among(e, fallback)
	})
	made := slices.DeleteFunc(slices.Clone(fallback), func(e schema.Error) bool {
		return !violation(e) || among(e, written)
	})
	var errs []error
	if len(kept) > 0 {
		errs = append(errs, kept)
	}
	if len(made) > 0 {
		errs = append(errs, withoutLines(made, "after the patches of "+filepath.Base(k.dir)+": "))
	}
	return errors.Join(errs...)
}

// refuseMistakes reports documents that kustomize would refuse without a position, or that it would pass through
// although they were meant for tegen.
func (k *kustomization) refuseMistakes(sources []schema.Source) error {
	all, mistaken := k.inputs(sources)
	if !mistaken {
		return nil
	}
	_, err := schema.LoadForGit(all)
	var mistakes schema.Errors
	if errors.As(err, &mistakes) { // less what patches may mend
		if heads := slices.DeleteFunc(slices.Clone(mistakes), func(e schema.Error) bool {
			return strings.HasPrefix(e.Path, "spec")
		}); len(heads) > 0 {
			return heads
		}
	}
	return err
}

// inputs are what the schema reads of the sources and of the files of the overlay, less those of kustomizations below
// that have tegen themselves, and whether one of them is surely a mistake. The jobs of the overlay are left out where
// sources are there: these take their place.
func (k *kustomization) inputs(sources []schema.Source) (all []schema.Source, mistaken bool) {
	given := map[string]bool{}
	for _, src := range sources {
		given[real(src.Name)] = true
		text, wrong := inputsOf(src.Name, src.Data, false)
		all = append(all, schema.Source{Name: src.Name, Data: text})
		mistaken = mistaken || wrong
	}
	named := ""
	if cfg, err := parseConfig(k.config); err == nil {
		named = cfg.environment
	}
	own := k.types
	own.Resources = nil
	for i, r := range k.types.Resources {
		if k.nested[i] == nil {
			own.Resources = append(own.Resources, r)
		}
	}
	for _, path := range inputFiles(k.dir, &own) {
		text, err := readRegular(path)
		if err != nil || given[real(path)] {
			continue // kustomize reports it; or it was read already
		}
		text, wrong := inputsOf(relative(path), yamldoc.JoinSurrogates(text), true)
		replaced := len(sources) > 0 && bytes.Contains(text, []byte("kind: "+names.KindTrainingJob))
		if !wrong && (len(text) == 0 || replaced) {
			continue
		}
		all = append(all, schema.Source{Name: relative(path), Data: text, Environment: named})
		mistaken = mistaken || wrong
	}
	return all, mistaken
}

// inputsOf is the text of a file with an empty line in the place of each line of a document that is not for tegen, nil
// where no document is, and whether one is surely a mistake: its head is, or it is an Environment where none may be.
func inputsOf(name string, text []byte, environments bool) (kept []byte, mistaken bool) {
	some := false
	for _, doc := range yamldoc.Split(name, text) {
		h, local, known := headIn(doc)
		class := h.Class()
		if !known || class == dochead.Foreign || class == dochead.Config && local {
			kept = append(kept, bytes.Repeat([]byte("\n"), bytes.Count(doc.Text, []byte("\n")))...)
			continue
		}
		some = true
		kept = append(kept, doc.Text...)
		mistaken = mistaken || class != dochead.Input || h.Kind == names.KindEnvironment && !environments ||
			!slices.Contains(h.Keys, "metadata")
	}
	if !some {
		return nil, false
	}
	return kept, mistaken
}

// headIn is the head of a document, and whether it is marked as local. Neither is known of a document without content,
// nor of one that is no mapping or no YAML, which kustomize refuses. A document that is written as most are is
// not parsed.
func headIn(doc yamldoc.Document) (h dochead.Head, local, known bool) {
	if h, ok := scanned(doc); ok && h.Class() != dochead.Config &&
		(h.Kind != names.KindTrainingJob || h.Class() != dochead.Foreign) { // its spec decides
		return h, false, true
	}
	n, err := doc.Parse()
	if n = yamldoc.Target(n); err != nil || n == nil || n.Kind != yaml.MappingNode {
		return h, false, false
	}
	return headOf(n), isLocal(n), true
}

// scanned is the head of a document with a line for each key of the object at the left edge, and plain values.
func scanned(doc yamldoc.Document) (h dochead.Head, ok bool) {
	for line := range bytes.Lines(doc.Text) {
		if strings.IndexByte(" \t#\r\n-", line[0]) >= 0 {
			continue
		}
		key, value, found := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		if !found || value != "" && value[0] != ' ' || !isPlain(key) {
			return h, false
		}
		value = strings.TrimSpace(value)
		switch key {
		case "apiVersion":
			h.APIVersion = value
		case "kind":
			h.Kind = value
		default:
			value = ""
		}
		if !isPlain(value) || value == "null" || slices.Contains(h.Keys, key) {
			return h, false
		}
		h.Keys = append(h.Keys, key)
	}
	return h, len(h.Keys) > 0
}

// isPlain reports whether a text is surely itself in YAML.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '/'
	})
}

// inputFiles are the files among the resources of a kustomization, those of the directories among them and of its
// components included.
func inputFiles(dir string, t *types.Kustomization) []string {
	var out []string
	for i, name := range slices.Concat(t.Resources, t.Components) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case !info.IsDir() && i < len(t.Resources):
			out = append(out, path)
		case info.IsDir():
			if _, below, err := readFile(path); err == nil {
				out = append(out, inputFiles(path, &below)...)
			}
		}
	}
	return out
}

// real is the absolute name of a file without links, the name itself if there is no such file.
func real(name string) string {
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return name
	}
	return path
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
