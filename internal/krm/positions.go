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

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// withPositions finds the mistakes again in the files as they were written, where they have lines. What only
// kustomize's patches made wrong has none there.
func (k *kustomization) withPositions(sources []schema.Source, fallback schema.Errors) error {
	all := slices.Clone(sources)
	for _, path := range inputFiles(k.dir, k.types.Resources) {
		text, err := readRegular(path)
		if err != nil || !bytes.Contains(text, []byte("tegen.dev/")) {
			continue
		}
		if len(sources) > 0 && bytes.Contains(text, []byte("kind: "+names.KindTrainingJob)) {
			continue // the given jobs stand for these
		}
		all = append(all, schema.Source{Name: relative(path), Data: yamldoc.JoinSurrogates(text)})
	}
	if _, err := schema.Load(all); err != nil {
		return err
	}
	lines := make([]string, len(fallback))
	for i, m := range fallback {
		lines[i] = "after the patches of " + filepath.Base(k.dir) + ": " + itemError(m)
	}
	return errors.New(strings.Join(lines, "\n"))
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

// stand is where a job was written, and what it is called once kustomizations have had it.
type stand struct{ name, namespace, at string }

// place returns what finds the place of a job in the files as they were written, "" where it is none of theirs any more.
// They are read when the first is asked for: most jobs have nothing to tell.
func (k *kustomization) place(sources []schema.Source) func(*schema.Job) string {
	all := sync.OnceValue(func() []stand {
		var given []stand
		for _, src := range sources {
			given = append(given, standing(src.Name, src.Data)...)
		}
		return append(called(given, &k.types), written(nil, k.dir, &k.types)...) // those given stand for others of the name
	})
	return func(job *schema.Job) string {
		var named []stand
		for _, s := range all() {
			if s.name != job.Metadata.Name {
				continue
			}
			if s.namespace == job.Metadata.Namespace {
				return s.at
			}
			named = append(named, s)
		}
		if len(named) == 1 { // its namespace may be a patch's, or an Environment's
			return named[0].at
		}
		return ""
	}
}

// written adds the jobs in the files of a kustomization, and of those below it, to those that a component is for.
func written(all []stand, dir string, t *types.Kustomization) []stand {
	for i, entry := range slices.Concat(t.Resources, t.Components) {
		path := filepath.Join(dir, entry)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			if text, err := readRegular(path); err == nil {
				all = append(all, standing(relative(path), yamldoc.JoinSurrogates(text))...)
			}
			continue
		}
		_, below, err := readFile(path)
		switch {
		case err != nil:
		case i < len(t.Resources):
			all = append(all, written(nil, path, &below)...)
		default:
			all = written(all, path, &below)
		}
	}
	return called(all, t)
}

// called gives jobs the names that a kustomization gives them.
func called(all []stand, t *types.Kustomization) []stand {
	for i := range all {
		all[i].name = t.NamePrefix + all[i].name + t.NameSuffix
		if t.Namespace != "" {
			all[i].namespace = t.Namespace
		}
	}
	return all
}

// standing are the jobs of a file, as far as it can be read.
func standing(file string, text []byte) (all []stand) {
	if !bytes.Contains(text, []byte(names.APIVersion)) {
		return nil
	}
	for _, doc := range yamldoc.Split(file, text) {
		n, err := doc.Parse()
		if err != nil || n == nil || !isInput(n) || kind(n) != names.KindTrainingJob {
			continue
		}
		home := namespace(n)
		if home == "" {
			home = "default"
		}
		all = append(all, stand{name(n), home, fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column)})
	}
	return all
}
