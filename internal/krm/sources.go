package krm

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// groupSize is how many jobs from outside kustomize builds at once. Its time grows with the square of what it builds,
// about a microsecond for each pair, and a build of nothing takes half a millisecond: 20 to 60 cost the same.
const groupSize = 30

// sourceItems takes jobs from outside through the overlay: what kustomize makes of them with the overlay's own patches,
// prefixes, labels and namespace and those of its components.
func (k *kustomization) sourceItems(first variant, sources []schema.Source) ([]*yaml.Node, error) {
	items, err := k.buildAll(k.withSources(first, sources, groupSize))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, n := range items {
		seen[identity(n)] = true
	}
	if len(seen) < len(items) { // two of one name: let kustomize say what it says of two in one group
		return k.buildAll(k.withSources(first, sources, math.MaxInt))
	}
	return items, nil
}

func (k *kustomization) buildAll(variants iter.Seq2[variant, error]) (items []*yaml.Node, err error) {
	for v, err := range variants {
		if err != nil {
			return nil, err
		}
		more, err := k.kustomize(v.types, v.files)
		if err != nil {
			return nil, k.ofGiven(v, err)
		}
		items = append(items, more...)
	}
	return items, nil
}

// ofGiven is an error of kustomize with the names that files from outside were given under.
func (k *kustomization) ofGiven(v variant, err error) error {
	if len(v.given) == 0 {
		return err
	}
	text := err.Error()
	for name, source := range v.given {
		text = strings.NewReplacer(filepath.Join(k.dir, name), source, name, source).Replace(text)
	}
	return errors.New(text)
}

// withSources are variants of the overlay whose resources are jobs from outside, so many in each, or all in one where
// something relates one job to another.
func (k *kustomization) withSources(first variant, sources []schema.Source, size int) iter.Seq2[variant, error] {
	return func(yield func(variant, error) bool) {
		p, err := k.projection(first)
		if err != nil {
			yield(variant{}, err)
			return
		}
		if !p.separate {
			size = math.MaxInt
		}
		bases := slices.DeleteFunc(k.folders(k.types)[1:], func(f *folder) bool { return f.component })
		for g, group := range groups(sources, size) {
			v := variant{files: map[string][]byte{}, given: map[string]string{}}
			for _, name := range slices.Concat(first.types.Configurations, first.types.Crds) {
				if text, ok := first.files[name]; ok {
					v.files[name] = text
				}
			}
			var resources []string
			for i, src := range group {
				name := fmt.Sprintf("tegen-input-%d-%d.yaml", g, i)
				v.files[name], v.given[name] = src.Data, src.Name
				resources = append(resources, name)
			}
			named := p.ids(group)
			v.types, err = p.of(k.dir, withoutResources(first.types), v.files, withoutResources,
				func(id resid.ResId) bool { return named[id] })
			v.types.Resources = resources
			if err == nil {
				err = configure(&v.types, v.files, bases)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// withoutNamed is a variant without the patches that name jobs from outside: its own are not patched by them.
func (k *kustomization) withoutNamed(first variant, sources []schema.Source) (variant, error) {
	p, err := k.projection(first)
	if err != nil || !p.named || len(sources) == 0 {
		return first, err
	}
	named := p.ids(sources)
	v := variant{files: maps.Clone(first.files)}
	v.types, err = p.of(k.dir, first.types, v.files, func(t types.Kustomization) types.Kustomization { return t },
		func(id resid.ResId) bool { return !named[id] })
	return v, err
}

// withoutResources is a kustomization without what it adds.
func withoutResources(t types.Kustomization) types.Kustomization {
	t.Resources, t.Generators, t.ConfigMapGenerator, t.SecretGenerator = nil, nil, nil, nil
	return t
}

// projection is what an overlay and its components do to jobs that are not among their resources.
type projection struct {
	dir        string
	files      map[string][]byte     // in place of those on the disk
	components map[string]*component // by the entry's directory
	separate   bool                  // nothing in them relates a job to another
	named      bool                  // some patches name what they change, and fail where it is not there
}

type component struct {
	dir, file string
	types     types.Kustomization
}

func (k *kustomization) projection(v variant) (*projection, error) {
	p := &projection{dir: k.dir, files: v.files, components: map[string]*component{}, separate: true}
	return p, p.read(k.dir, &v.types)
}

// read reads the components of a kustomization, and theirs.
func (p *projection) read(dir string, t *types.Kustomization) error {
	p.separate = p.separate && separates(*t)
	p.named = p.named || slices.ContainsFunc(append(merges(*t), t.Patches...),
		func(patch types.Patch) bool { return patch.Target == nil })
	for _, entry := range t.Components {
		at := filepath.Join(dir, entry)
		if p.components[at] != nil {
			continue
		}
		below, err := filepath.EvalSymlinks(at) // as kustomize names it
		if err != nil {
			return fmt.Errorf("reading a component of %s: %w", relative(dir), err)
		}
		c := &component{dir: below}
		if c.file, c.types, err = readFile(below); err != nil {
			return err
		}
		if name, err := filepath.Rel(p.dir, filepath.Join(below, c.file)); err == nil && p.files[name] != nil {
			c.types = types.Kustomization{}
			if err := sigsyaml.Unmarshal(p.files[name], &c.types); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
		p.components[at] = c
		if err := p.read(below, &c.types); err != nil {
			return err
		}
	}
	return nil
}

// separates says of a kustomization that it does to each job what it would do to that job alone. Replacements,
// variables and plugins may take a value from one job for another, and replicas have to find what they name.
func separates(t types.Kustomization) bool {
	t.TypeMeta, t.MetaData = types.TypeMeta{}, nil
	t.Resources, t.Components, t.Generators, t.ConfigMapGenerator, t.SecretGenerator = nil, nil, nil, nil, nil
	t.GeneratorOptions, t.BuildMetadata, t.Configurations, t.Crds = nil, nil, nil, nil
	t.NamePrefix, t.NameSuffix, t.Namespace = "", "", ""
	t.Labels, t.CommonLabels, t.CommonAnnotations = nil, nil, nil //nolint:staticcheck // deprecated, and read
	t.Patches = nil
	t.PatchesJson6902, t.PatchesStrategicMerge = nil, nil //nolint:staticcheck // deprecated, and read all the same
	t.Images = nil
	return reflect.ValueOf(t).IsZero() || reflect.DeepEqual(t, types.Kustomization{Transformers: []string{}})
}

// groups deals sources out to groups of so many documents, in their order. A file that holds more is cut.
func groups(sources []schema.Source, size int) (all [][]schema.Source) {
	var group []schema.Source
	room := size
	end := func() {
		if len(group) > 0 {
			all = append(all, group)
		}
		group, room = nil, size
	}
	for _, src := range sources {
		docs := yamldoc.Split(src.Name, src.Data)
		if len(docs) > room {
			end()
		}
		for len(docs) > size {
			end()
			group = []schema.Source{{Name: src.Name, Data: joined(docs[:size])}}
			docs = docs[size:]
		}
		group = append(group, schema.Source{Name: src.Name, Data: joined(docs)})
		room -= len(docs)
	}
	end()
	return all
}

func joined(docs []yamldoc.Document) (text []byte) {
	for _, doc := range docs {
		text = append(text, doc.Text...)
	}
	return text
}

// ids are the jobs of sources by what kustomize knows them by; nil where no patch names one.
func (p *projection) ids(sources []schema.Source) map[resid.ResId]bool {
	if !p.named {
		return nil
	}
	of := map[resid.ResId]bool{}
	for _, src := range sources {
		for _, doc := range yamldoc.Split(src.Name, src.Data) {
			if id := effective(doc); id.Name != "" {
				of[id] = true
			}
		}
	}
	return of
}

// effective is what kustomize knows an object by, nothing of what is none: kustomize says so itself.
func effective(doc yamldoc.Document) (id resid.ResId) {
	n, err := doc.Parse()
	if n = yamldoc.Target(n); err != nil || n == nil || n.Kind != yaml.MappingNode {
		return id
	}
	id = resid.FromRNode(yaml.NewRNode(n))
	id.Namespace = id.EffectiveNamespace()
	return id
}

// of is a kustomization with those alone of its naming patches that are kept. Files get its components in the same way,
// less what they are to lose.
func (p *projection) of(dir string, t types.Kustomization, files map[string][]byte,
	less func(types.Kustomization) types.Kustomization, keep func(resid.ResId) bool,
) (types.Kustomization, error) {
	entries := t.Components
	t.Components = nil
	for _, entry := range entries {
		c := p.components[filepath.Join(dir, entry)]
		below, err := p.of(c.dir, less(c.types), files, less, keep)
		if err != nil {
			return t, err
		}
		if below.CheckEmpty() != nil {
			continue // kustomize refuses one that does nothing
		}
		text, err := sigsyaml.Marshal(below)
		if err != nil {
			return t, fmt.Errorf("building %s: %w", p.dir, err)
		}
		name, err := filepath.Rel(p.dir, filepath.Join(c.dir, c.file))
		if err != nil {
			return t, fmt.Errorf("building %s: %w", p.dir, err)
		}
		t.Components, files[name] = append(t.Components, entry), text
	}
	var patches []types.Patch
	for _, patch := range append(merges(t), t.Patches...) { // kustomize's own order
		if patch.Target != nil {
			patches = append(patches, patch)
			continue
		}
		texts, err := p.naming(dir, patch.Path, patch.Patch, keep)
		if err != nil {
			return t, err
		}
		for _, text := range texts {
			patches = append(patches, types.Patch{Patch: text, Options: patch.Options})
		}
	}
	t.Patches, t.PatchesStrategicMerge = patches, nil //nolint:staticcheck // deprecated, and read all the same
	return t, nil
}

// merges are patchesStrategicMerge as patches, for which kustomize prints no warning in every group.
func merges(t types.Kustomization) (all []types.Patch) {
	for _, entry := range t.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and read all the same
		if strings.Contains(string(entry), "\n") {
			all = append(all, types.Patch{Patch: string(entry)})
		} else {
			all = append(all, types.Patch{Path: string(entry)})
		}
	}
	return all
}

// naming are the patches of a file or a text that are kept by what they name.
func (p *projection) naming(dir, path, inline string, keep func(resid.ResId) bool) (texts []string, err error) {
	text := []byte(inline)
	if path != "" {
		if text, err = os.ReadFile(filepath.Join(dir, path)); err != nil {
			return nil, fmt.Errorf("reading a patch of %s: %w", relative(dir), err)
		}
	}
	for _, doc := range yamldoc.Split(path, text) {
		if !doc.IsBlank() && keep(effective(doc)) {
			texts = append(texts, string(doc.Text))
		}
	}
	return texts, nil
}
