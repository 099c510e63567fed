package krm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// Output is what an overlay builds: the bundles of its jobs, and whatever else its kustomization holds. Where further
// transformers ran after tegen, the bundles have no files: their objects are in Rest too.
type Output struct {
	Bundles []render.Bundle
	Rest    []byte
	Notes   finding.List // about the overlay
	Behind  string       // digest of the files of the transformers after tegen; "" without any
}

// Build says how overlays are built.
type Build struct {
	Printed bool // the caller prints and needs nothing else: the bundles have no jobs
	Exec    bool // functions of others may run, each of which is a program that the overlay names

	Generators generators.Set
}

// Overlay builds a kustomization that has tegen among its transformers, itself or in a kustomization below it, as
// kustomize would, but in this process: no plugins are enabled and nothing is fetched. Nothing is executed but
// functions of others, and these only with Exec. Jobs given as sources take the place of the overlay's own.
func (b Build) Overlay(dir string, sources []schema.Source, opts ...schema.Option) (*Output, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the overlay: %w", err)
	}
	if err := refuseRemote(abs, nil); err != nil {
		return nil, err
	}
	k, err := readKustomization(abs)
	if err != nil {
		return nil, err
	}
	k.options(opts)
	if !k.renders() {
		return nil, fmt.Errorf("reading %s: no %s of %s is among its transformers, nor below it",
			filepath.Join(dir, k.file), names.KindGenerator, names.APIVersion)
	}
	if err := k.refuseForeign(b.Exec); err != nil {
		return nil, err
	}
	out, err := k.build(sources, render.Options{Generators: b.Generators, Printed: b.Printed})
	if err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, k.unlisted(dir, sources)...)
	return out, out.check(dir, k)
}

// Overlay is that of a Build without programs of others.
func Overlay(dir string, sources []schema.Source, opts ...schema.Option) (*Output, error) {
	return Build{}.Overlay(dir, sources, opts...)
}

// check checks the references of everything that the overlay builds: rendering checked those of the jobs alone, before
// patches and prefixes. It notes objects that were changed after they were rendered.
func (out *Output) check(dir string, k *kustomization) error {
	rules := schema.PolicyOf(k.given)
	if len(out.Rest) == 0 && rules == nil {
		return nil
	}
	text, err := out.stream()
	if err != nil {
		return err
	}
	objects, err := manifest.Read(dir, text)
	if err != nil {
		return err
	}
	out.Notes = append(out.Notes, k.changedLater(objects)...)
	for _, note := range render.Renamed(objects) {
		out.Notes = append(out.Notes, note.At(relative(filepath.Join(k.dir, k.file))))
	}
	return out.located(render.Findings(objects, rules), dir)
}

// stream is all of the output as one YAML stream.
func (out *Output) stream() ([]byte, error) {
	var text bytes.Buffer
	err := out.Write(&text)
	return text.Bytes(), err
}

// Write writes the output as one YAML stream.
func (out *Output) Write(w io.Writer) error {
	if _, err := w.Write(out.Rest); err != nil {
		return err
	}
	if len(out.Rest) > 0 && slices.ContainsFunc(out.Bundles, func(b render.Bundle) bool { return len(b.Files) > 0 }) {
		if _, err := io.WriteString(w, manifest.Separator); err != nil {
			return err
		}
	}
	return render.Write(w, out.Bundles)
}

// Objects are the objects of each bundle, in the order of Bundles. Where further
// transformers ran after tegen, they are found by the labels that name their job, and come without their concerns.
func (out *Output) Objects() ([][]generators.Concern, error) {
	all := make([][]generators.Concern, len(out.Bundles))
	named := map[string][]int{} // bundles without files, by their job's name
	for i := range out.Bundles {
		all[i] = out.Bundles[i].Objects()
		if len(out.Bundles[i].Files) == 0 {
			name := out.Bundles[i].Summary.Name
			named[name] = append(named[name], i)
		}
	}
	if len(named) == 0 {
		return all, nil
	}
	rest, err := manifest.Read("the overlay", out.Rest)
	if err != nil {
		return nil, err
	}
	found := map[int][]runtime.Object{}
	for _, obj := range rest {
		if m, err := meta.Accessor(obj); err == nil {
			job := names.JobOf(func(key string) string { return m.GetLabels()[key] })
			if among := named[job]; len(among) > 0 {
				i := out.sameNamespace(among, m.GetNamespace(), m.GetLabels()[names.LabelNamespace])
				found[i] = append(found[i], obj)
			}
		}
	}
	for i, objects := range found {
		all[i] = append(all[i], generators.Concern{Objects: objects})
	}
	return all, nil
}

// sameNamespace chooses among the bundles of jobs of one name; the first, if the overlay changed all their namespaces.
func (out *Output) sameNamespace(among []int, namespaces ...string) int {
	for _, i := range among {
		for _, namespace := range namespaces {
			if out.Bundles[i].Summary.Namespace == namespace {
				return i
			}
		}
	}
	return among[0]
}

// kustomization is an overlay's file, cut at each function. config is that of the first function of tegen, nil where
// tegen is only in the nested kustomizations; their key is the index among the resources.
type kustomization struct {
	dir, file   string
	types       types.Kustomization
	config      *yaml.Node
	generators  []function // under generators
	before      []string   // transformers of kustomize itself in front of the first step
	steps       []step
	nested      map[int]*kustomization
	behind      seenFiles       // what kustomize read to change objects after tegen
	built       []byte          // what a nested one built
	given, opts []schema.Option // opts has its own policy too
	policy      *policy.Policy  // of its own ConfigMaps
}

// options are those of loading jobs, here and in the kustomizations below.
func (k *kustomization) options(opts []schema.Option) {
	k.given, k.opts = opts, opts
	for _, nested := range k.nested {
		nested.options(opts)
	}
}

// renders reports whether tegen is among its functions, or below it.
func (k *kustomization) renders() bool {
	return k.config != nil || len(k.nested) > 0 ||
		slices.ContainsFunc(k.generators, func(f function) bool { return f.kind == ownFunction })
}

// readFile parses the kustomization of a directory, "" where it has none.
func readFile(dir string) (name string, t types.Kustomization, err error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		text, err := readRegular(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = sigsyaml.UnmarshalStrict(text, &t)
		}
		if docs, mistake := filled(text); err == nil && mistake == nil && len(docs) > 1 {
			err = errors.New("it has several documents, and kustomize reads the first: remove the others")
		}
		if err != nil {
			return name, t, fmt.Errorf("reading %s: %w", filepath.Join(dir, name), err)
		}
		t.FixKustomization() // deprecated fields become the current ones: bases become resources
		return name, t, nil
	}
	return "", t, nil
}

func readKustomization(dir string) (*kustomization, error) {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // by which kustomize asks for its files
	}
	k := &kustomization{dir: dir, nested: map[int]*kustomization{}}
	var err error
	if k.file, k.types, err = readFile(dir); err != nil {
		return nil, err
	}
	if k.file == "" {
		return nil, fmt.Errorf("reading the overlay %s: it has no kustomization.yaml", dir)
	}
	for i, r := range k.types.Resources {
		if info, err := os.Stat(filepath.Join(dir, r)); err != nil || !info.IsDir() {
			continue
		}
		below, err := readKustomization(filepath.Join(dir, r))
		if err != nil {
			return nil, err
		}
		if below.renders() {
			k.nested[i] = below
		}
	}
	return k, k.readFunctions()
}

// build runs the transformers before the first function in kustomize, and then each function and what is behind it.
func (k *kustomization) build(sources []schema.Source, options render.Options) (*Output, error) {
	if err := k.refuseMistakes(sources); err != nil {
		return nil, err
	}
	first := k.types
	first.Transformers, first.Validators = k.before, nil
	files, notes, err := k.buildNested(&first, sources, options)
	if err != nil {
		return nil, err
	}
	generated, err := k.generate(&first, files, sources, options)
	if err != nil {
		return nil, err
	}
	own, err := k.withoutNamed(variant{types: first, files: files}, sources)
	if err != nil {
		return nil, err
	}
	items, err := k.withPolicies(own.types, own.files)
	if err != nil {
		return nil, k.explained(first, files, err)
	}
	if items, err = k.policies(items); err != nil {
		return nil, err
	}
	var outside []*yaml.Node
	if k.config != nil && len(sources) > 0 && len(k.nested) == 0 {
		if outside, err = k.sourceItems(variant{types: first, files: files}, sources); err != nil {
			return nil, err
		}
	}
	more, err := k.unmatched(variant{types: first, files: files}, sources, slices.Concat(items, outside))
	if err != nil {
		return nil, err
	}
	_, fenced := fenceAmong(items)
	b := &building{
		kustomization: k, fenced: fenced, own: own, sources: sources, options: options, settled: generated,
		items: items, notes: slices.Concat(notes, more, k.replacedPrograms()),
	}
	if k.config == nil {
		if err := k.unrendered(items); err != nil {
			return nil, err
		}
	} else {
		if b.items = items; len(sources) > 0 && len(k.nested) == 0 {
			b.items = replaced(items, outside)
		}
		b.inputs, b.items = parted(b.items)
	}
	return k.judge(b.onlyJobs(b.finish()))
}

// replaced are items with those from outside in the place of the overlay's own jobs.
func replaced(items, outside []*yaml.Node) []*yaml.Node {
	given := map[string]bool{}
	for _, n := range outside {
		given[identity(n)] = true
	}
	items = slices.DeleteFunc(items, func(n *yaml.Node) bool {
		return kind(n) == names.KindTrainingJob && isInput(n) || given[identity(n)]
	})
	return append(items, outside...)
}

// unrendered refuses inputs of a kustomization whose transformers are without tegen: those below it, which have it, do
// not render them.
func (k *kustomization) unrendered(items []*yaml.Node) error {
	var errs []error
	for _, n := range items {
		if isInput(n) {
			errs = append(errs, fmt.Errorf("reading %s: %s is not rendered: list a %s of %s under transformers there "+
				"too, or move the file below", relative(filepath.Join(k.dir, k.file)), title(n), names.KindGenerator,
				names.APIVersion))
		}
	}
	return errors.Join(errs...)
}

// parted are the inputs among items, and the rest.
func parted(items []*yaml.Node) (inputs, rest []*yaml.Node) {
	for _, n := range items {
		if isInput(n) {
			inputs = append(inputs, n)
		} else {
			rest = append(rest, n)
		}
	}
	return inputs, rest
}

// buildNested renders the kustomizations below that have tegen, and puts what comes out in their place among the
// resources.
func (k *kustomization) buildNested(first *types.Kustomization, sources []schema.Source, options render.Options,
) (files map[string][]byte, notes finding.List, err error) {
	files = map[string][]byte{}
	first.Resources = slices.Clone(first.Resources)
	options.Printed = true
	for _, i := range slices.Sorted(maps.Keys(k.nested)) {
		out, err := k.nested[i].build(sources, options)
		if err != nil {
			return nil, nil, err
		}
		text, err := out.stream()
		if err != nil {
			return nil, nil, err
		}
		name := fmt.Sprintf("tegen-nested-%d.yaml", i)
		first.Resources[i], files[name] = name, text
		notes = append(notes, out.Notes...)
		k.watch()
		k.behind["nested "+name] = sha256.Sum256([]byte(out.Behind))
		k.nested[i].built = text
		if err := configure(first, files, k.nested[i].folders(k.nested[i].types)); err != nil {
			return nil, nil, err
		}
	}
	return files, notes, nil
}

// render renders the jobs among items. Its errors have positions in the files of the jobs.
func (k *kustomization) render(items []*yaml.Node, cfg config, sources []schema.Source, options render.Options,
) ([]render.Bundle, error) {
	bundles, err := renderItems(items, cfg, k.place(sources), options, k.opts...)
	var mistakes schema.Errors
	if errors.As(err, &mistakes) {
		return nil, k.withPositions(sources, mistakes)
	}
	return bundles, err
}

// withoutFiles are bundles without their files: the jobs, and nothing that would be written twice.
func withoutFiles(bundles []render.Bundle) []render.Bundle {
	out := make([]render.Bundle, len(bundles))
	for i := range bundles {
		out[i].Job, out[i].Summary = bundles[i].Job, bundles[i].Summary
	}
	return out
}

// renamed says whether jobs name objects of the overlay by the names that they had before it changed them: by a hash
// of a generated ConfigMap's content, or by a prefix.
func renamed(items []*yaml.Node, bundles []render.Bundle) bool {
	names := map[string][]string{}
	for _, n := range items {
		names[kind(n)] = append(names[kind(n)], name(n))
	}
	for _, b := range bundles {
		for _, expected := range b.Expects {
			kind, name, _ := strings.Cut(expected, "/")
			if !slices.Contains(names[kind], name) && slices.ContainsFunc(names[kind],
				func(n string) bool { return strings.Contains(n, name) }) {
				return true
			}
		}
	}
	return false
}

// resolved has kustomize update such names, its last step: the overlay, without hashes yet, and the objects are the
// resources of a kustomization around both. It returns the objects.
func (b *building) resolved(objects []byte) ([]*yaml.Node, error) {
	text, err := sigsyaml.Marshal(b.own.types)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", b.dir, err)
	}
	inner := filepath.Join("..", filepath.Base(b.dir))
	all := map[string][]byte{"tegen-rendered.yaml": objects, filepath.Join(inner, b.file): text}
	for name, data := range b.own.files {
		all[filepath.Join(inner, name)] = data
	}
	b.watch()
	around := kustomization{
		dir: filepath.Join(filepath.Dir(b.dir), "."+filepath.Base(b.dir)+".tegen"), file: b.file, behind: b.behind,
	}
	items, err := around.kustomize(types.Kustomization{Resources: []string{inner, "tegen-rendered.yaml"}}, all)
	if err != nil {
		return nil, err
	}
	rendered, err := filled(objects)
	return items[len(items)-len(rendered):], err
}
