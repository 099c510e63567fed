package krm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/contract"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// Output is what an overlay builds: the bundles of its jobs, and whatever else its kustomization holds. Where further
// transformers ran after tegen, the bundles are in Rest too.
type Output struct {
	Bundles []render.Bundle
	Rest    []byte
}

// Overlay builds a kustomization that has tegen among its transformers as kustomize would, but in this process: no
// plugins are enabled and nothing is executed. Jobs given as sources take the place of the overlay's own.
func Overlay(dir string, sources []schema.Source) (*Output, error) {
	k, err := readKustomization(dir)
	if err != nil {
		return nil, err
	}
	out, err := k.build(sources)
	var mistakes schema.Errors
	if errors.As(err, &mistakes) {
		return nil, k.withPositions(sources, mistakes)
	}
	return out, err
}

// kustomization is an overlay's file, cut at tegen's place among the transformers.
type kustomization struct {
	dir, file     string
	types         types.Kustomization
	config        *yaml.RNode
	before, after []string
}

func readKustomization(dir string) (*kustomization, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the overlay: %w", err)
	}
	k := &kustomization{dir: abs}
	var text []byte
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if text, err = os.ReadFile(filepath.Join(abs, name)); err == nil {
			k.file = name
			break
		}
	}
	if k.file == "" {
		return nil, fmt.Errorf("reading the overlay %s: it has no kustomization.yaml", dir)
	}
	if err := sigsyaml.UnmarshalStrict(text, &k.types); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, k.file), err)
	}
	for i, t := range k.types.Transformers {
		config, err := k.functionConfig(t)
		if err != nil {
			return nil, err
		}
		if config != nil {
			k.config, k.before, k.after = config, k.types.Transformers[:i], k.types.Transformers[i+1:]
			return k, nil
		}
	}
	return nil, fmt.Errorf("reading %s: no %s of %s is among its transformers", filepath.Join(dir, k.file), contract.KindGenerator, contract.APIVersion)
}

// functionConfig returns the Generator that a transformer entry holds or names, nil where it is something else.
func (k *kustomization) functionConfig(entry string) (*yaml.RNode, error) {
	text := []byte(entry)
	if !strings.Contains(entry, "\n") {
		path := filepath.Join(k.dir, entry)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading a transformer of the overlay: %w", err)
		}
		if info.IsDir() {
			return nil, nil
		}
		if text, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("reading a transformer of the overlay: %w", err)
		}
	}
	n, err := yaml.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading a transformer of the overlay: %w", err)
	}
	if n.GetApiVersion() == contract.APIVersion && n.GetKind() == contract.KindGenerator {
		return n, nil
	}
	return nil, nil
}

// build runs what stands before tegen in kustomize, then tegen, then what stands behind it in kustomize again.
func (k *kustomization) build(sources []schema.Source) (*Output, error) {
	first := k.types
	first.Transformers = k.before
	items, err := k.kustomize(first, nil)
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 {
		items = slices.DeleteFunc(items, func(n *yaml.RNode) bool { return n.GetKind() == contract.KindTrainingJob && isInput(n) })
		more, err := k.patched(first, sources)
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	cfg, err := parseConfig(k.config)
	if err != nil {
		return nil, err
	}
	bundles, err := renderItems(items, cfg.generators)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, isInput)
	if len(k.after)+len(k.types.Validators) == 0 {
		rest, err := stream(items)
		return &Output{bundles, rest}, err
	}
	rl := &framework.ResourceList{Items: items}
	if rl.Items, err = merge(rl.Items, bundles); err != nil {
		return nil, err
	}
	all, err := stream(rl.Items)
	if err != nil {
		return nil, err
	}
	last := types.Kustomization{Resources: []string{"tegen-rendered.yaml"}, Transformers: k.after, Validators: k.types.Validators}
	if items, err = k.kustomize(last, map[string][]byte{"tegen-rendered.yaml": all}); err != nil {
		return nil, err
	}
	rest, err := stream(items)
	return &Output{Rest: rest}, err
}

// patched takes jobs given from outside through the overlay's own patches, prefixes, labels and namespace.
func (k *kustomization) patched(first types.Kustomization, sources []schema.Source) ([]*yaml.RNode, error) {
	files := map[string][]byte{}
	first.Resources, first.Components, first.ConfigMapGenerator, first.SecretGenerator, first.Generators = nil, nil, nil, nil, nil
	for i, src := range sources {
		name := fmt.Sprintf("tegen-input-%d.yaml", i)
		files[name] = src.Data
		first.Resources = append(first.Resources, name)
	}
	return k.kustomize(first, files)
}

// kustomize builds a variant of the overlay's kustomization, with files that exist in memory only.
func (k *kustomization) kustomize(variant types.Kustomization, files map[string][]byte) ([]*yaml.RNode, error) {
	text, err := sigsyaml.Marshal(variant)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", k.dir, err)
	}
	fs := overlaidFS{FileSystem: filesys.MakeFsOnDisk(), files: map[string][]byte{filepath.Join(k.dir, k.file): text}}
	for name, data := range files {
		fs.files[filepath.Join(k.dir, name)] = data
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, k.dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", k.dir, err)
	}
	return result.ToRNodeSlice(), nil
}

// stream prints nodes as kustomize does. The inputs' mark of being local stands for itself here: they are gone.
func stream(nodes []*yaml.RNode) ([]byte, error) {
	var out bytes.Buffer
	first := true
	for _, n := range nodes {
		if n.GetAnnotations()[localConfig] == "true" {
			continue
		}
		if !first {
			out.WriteString(manifest.Separator)
		}
		first = false
		w := kio.ByteWriter{Writer: &out, ClearAnnotations: []string{"internal.config.kubernetes.io/path", "internal.config.kubernetes.io/index"}}
		if err := w.Write([]*yaml.RNode{n}); err != nil {
			return nil, fmt.Errorf("printing %s: %w", n.GetName(), err)
		}
	}
	return out.Bytes(), nil
}

// withPositions finds the mistakes again in the files as they were written, where they have lines. What only
// kustomize's patches made wrong has none there.
func (k *kustomization) withPositions(sources []schema.Source, fallback schema.Errors) error {
	all := slices.Clone(sources)
	for _, name := range k.types.Resources {
		path := filepath.Join(k.dir, name)
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(contract.APIVersion)) {
			if len(sources) > 0 && bytes.Contains(text, []byte("kind: "+contract.KindTrainingJob)) {
				continue // the given jobs stand for these
			}
			all = append(all, schema.Source{Name: filepath.Join(filepath.Base(k.dir), name), Data: text})
		}
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

// overlaidFS is the disk with a few files put over it. It hides the mark that keeps tegen's inputs out of a build,
// since here the build is only half done when they are needed.
type overlaidFS struct {
	filesys.FileSystem
	files map[string][]byte
}

func (fs overlaidFS) ReadFile(path string) ([]byte, error) {
	data, ok := fs.files[filepath.Clean(path)]
	if !ok {
		var err error
		if data, err = fs.FileSystem.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if bytes.Contains(data, []byte(contract.APIVersion)) {
		data = bytes.ReplaceAll(data, []byte(localConfig), []byte("internal."+localConfig))
	}
	return data, nil
}

func (fs overlaidFS) Exists(path string) bool {
	_, ok := fs.files[filepath.Clean(path)]
	return ok || fs.FileSystem.Exists(path)
}

func (fs overlaidFS) IsDir(path string) bool {
	_, ok := fs.files[filepath.Clean(path)]
	return !ok && fs.FileSystem.IsDir(path)
}

func (fs overlaidFS) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if _, ok := fs.files[filepath.Clean(path)]; ok {
		return filesys.ConfirmedDir(filepath.Dir(path)), filepath.Base(path), nil
	}
	return fs.FileSystem.CleanedAbs(path)
}
