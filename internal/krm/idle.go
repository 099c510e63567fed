package krm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// Other fields of a kustomization whose entries may change nothing: an image of a name that nothing has, or in a field
// that kustomize does not know; and the target of a replacement that selects nothing.
const (
	fieldImages       = "images"
	fieldReplacements = "replacements"
)

// imageEntries are the entries of images of folders.
func imageEntries(folders []*folder) (all []targetedPatch) {
	for _, f := range folders {
		for i := range f.types.Images {
			all = append(all, targetedPatch{folder: f, list: fieldImages, index: i})
		}
	}
	return all
}

// image is what an entry of images is.
func (a targetedPatch) image() types.Image { return a.folder.types.Images[a.index] }

// idleImages finds the entries of images that change nothing, or that leave an image of a TrainingJob as it is which
// has their name: kustomize changes images in containers, and elsewhere only in fields that a configuration names.
// items are what was built. A second build, with a mark in the place of each new name, settles what they leave open.
func (k *kustomization) idleImages(v variant, sources []schema.Source, items []*yaml.Node, folders []*folder) (
	notes finding.List, err error,
) {
	open := map[int]targetedPatch{}
	for i, a := range imageEntries(folders) {
		if !acted(a.image(), items) {
			open[i] = a
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	kept := map[int]string{}
	matched, err := k.matched(v, sources, open, true, func(n *yaml.Node) {
		if kind(n) != names.KindTrainingJob || !isInput(n) {
			return
		}
		eachImage(n, "", func(field, value string) {
			for i, a := range open {
				if kept[i] == "" && changes(a.image(), value) {
					kept[i] = fmt.Sprintf("TrainingJob %s keeps %s in %s: kustomize changes an image outside of "+
						"containers only where a configuration names its field; add 'configurations: "+
						"[kustomizeconfig.yaml]', and write 'images: [{path: %s, kind: TrainingJob}]' into that file",
						name(n), value, field, fieldSpec(field))
				}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	for i, a := range imageEntries(folders) {
		what := kept[i]
		if _, ok := open[i]; ok && what == "" && !matched[i] {
			what = fmt.Sprintf("no image has the name %s, so it changes nothing; correct the name, or remove the entry",
				a.image().Name)
		}
		if what != "" {
			f := finding.Finding{Rule: "overlay/images", Level: finding.Note, Message: fmt.Sprintf("%s[%d]: %s", a.list,
				a.index, what)}
			notes = append(notes, f.At(a.position()))
		}
	}
	return notes, nil
}

// acted reports that what was built has an image as an entry makes it, and none that it would still change.
func acted(entry types.Image, items []*yaml.Node) bool {
	made, left := false, false
	result := entry
	if entry.NewName != "" {
		result.Name = entry.NewName
	}
	for _, n := range items {
		eachImage(n, "", func(_, value string) {
			result.NewName = "tegen.dev/probe"
			made = made || changes(result, value)
			left = left || changes(entry, value)
		})
	}
	return made && !left
}

// changes reports whether an entry of images changes an image, by kustomize's own filter.
func changes(entry types.Image, value string) bool {
	n := yaml.NewRNode(mapping(scalar("image"), scalar(value)))
	filter := imagetag.Filter{ImageTag: entry, FsSlice: types.FsSlice{{Path: "image"}}}
	_, err := filter.Filter([]*yaml.RNode{n})
	return err == nil && textOf(yamldoc.Field(n.YNode(), "image")) != value
}

// eachImage calls f with each image of an object and its field: what is called image, and what is below images.
func eachImage(n *yaml.Node, at string, f func(field, value string)) {
	switch n = yamldoc.Target(n); {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			eachImage(item, at+"["+strconv.Itoa(i)+"]", f)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			field := strings.TrimPrefix(at+"."+key, ".")
			if text := textOf(value); text != "" && (key == "image" || strings.HasSuffix(at, ".images")) {
				f(field, text)
			} else {
				eachImage(value, field, f)
			}
		}
	}
}

// fieldSpec is a field as a configuration of kustomize names it.
func fieldSpec(field string) string {
	return strings.ReplaceAll(ofItem().ReplaceAllString(field, ""), ".", "/")
}

var ofItem = lazy.Regexp(`\[\d+\]`)

// isMarked reports whether an object has the mark of an entry.
func (a targetedPatch) isMarked(n *yaml.Node, mark string) (is bool) {
	if a.list != fieldImages {
		return yamldoc.Field(n, mark) != nil
	}
	eachImage(n, "", func(_, value string) {
		is = is || changes(types.Image{Name: mark, NewTag: "probe"}, value)
	})
	return is
}

// replacementTargets are the targets of replacements of folders.
func replacementTargets(folders []*folder) (all []targetedPatch) {
	for _, f := range folders {
		for i, field := range f.types.Replacements {
			for _, r := range readReplacements(f.dir, field) {
				for _, target := range r.Targets {
					if target.Select != nil {
						all = append(all, targetedPatch{
							folder: f, list: fieldReplacements, index: i, target: target.Select,
							replacement: &types.Replacement{
								Source: r.Source, SourceValue: r.SourceValue,
								Targets: []*types.TargetSelector{target},
							},
						})
					}
				}
			}
		}
	}
	return all
}

// readReplacements are those of an entry, which may name a file with one or several. What cannot be read is kustomize's
// to report.
func readReplacements(dir string, field types.ReplacementField) []types.Replacement {
	if field.Path == "" {
		return []types.Replacement{field.Replacement}
	}
	text, err := readRegular(filepath.Join(dir, field.Path))
	if err != nil {
		return nil
	}
	var several []types.Replacement
	if sigsyaml.Unmarshal(text, &several) == nil {
		return several
	}
	var one types.Replacement
	if sigsyaml.Unmarshal(text, &one) != nil {
		return nil
	}
	return []types.Replacement{one}
}

// markOthers puts marks of images and replacements into a kustomization.
func markOthers(t types.Kustomization, open map[int]targetedPatch) types.Kustomization {
	t.Images, t.Replacements = slices.Clone(t.Images), slices.Clone(t.Replacements)
	for i, a := range open {
		mark := patchMark + strconv.Itoa(i)
		switch a.list {
		case fieldImages:
			t.Images[a.index].NewName = mark
		case fieldReplacements:
			target := *a.replacement.Targets[0]
			target.FieldPaths, target.Options = []string{mark}, &types.FieldOptions{Create: true}
			r := types.Replacement{
				Source: a.replacement.Source, SourceValue: a.replacement.SourceValue,
				Targets: []*types.TargetSelector{&target},
			}
			t.Replacements = append(t.Replacements, types.ReplacementField{Replacement: r})
		}
	}
	return t
}

// remedy is what to do about a target that selects nothing. Below it or behind it, tegen may have the objects that it
// is meant for.
func (k *kustomization) remedy(a targetedPatch) string {
	job := a.target.Kind == names.KindTrainingJob
	switch {
	case job && len(k.nested) > 0:
		return "tegen has rendered the TrainingJobs in a kustomization below; move the entry there"
	case !job && a.target.Kind != "" && k.config != nil:
		return "tegen runs behind it, so only TrainingJobs and the overlay's own objects are here; correct the " +
			"target, " +
			"or change the TrainingJob"
	}
	return "correct the target, or remove the patch"
}

// passedBy finds bases whose fields do not reach the jobs that were named, although the base lists their files: jobs
// from outside take the place of those of the overlay, and pass through the overlay alone.
func passedBy(sources []schema.Source, folders []*folder) (notes finding.List) {
	named := map[string]bool{}
	for _, src := range sources {
		if path, err := filepath.Abs(src.Name); err == nil {
			named[resolvedPath(path)] = true
		}
	}
	for _, f := range folders[1:] {
		fields := transforming(f.types)
		if f.component || len(fields) == 0 {
			continue
		}
		listed := slices.ContainsFunc(f.types.Resources, func(entry string) bool {
			return named[resolvedPath(filepath.Join(f.dir, entry))]
		})
		if listed {
			note := finding.Finding{
				Rule: "overlay/base", Level: finding.Note,
				Message: strings.Join(fields, ", ") + ": jobs that are named on the command line do not pass through " +
					"this base; name none of its jobs, or move this to the overlay",
			}
			notes = append(notes, note.At(relative(filepath.Join(f.dir, f.file))))
		}
	}
	return notes
}

func resolvedPath(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// transforming are the fields of a kustomization that change jobs, in the order in which kustomize applies them.
func transforming(t types.Kustomization) (fields []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{fieldPatches, len(t.Patches)+len(merges(t)) > 0},
		{"namespace", t.Namespace != ""},
		{"namePrefix", t.NamePrefix != ""},
		{"nameSuffix", t.NameSuffix != ""},
		{"labels", len(t.Labels)+len(t.CommonLabels) > 0}, //nolint:staticcheck // deprecated, and read all the same
		{"commonAnnotations", len(t.CommonAnnotations) > 0},
		{fieldJSON, len(t.PatchesJson6902) > 0}, //nolint:staticcheck // deprecated, and read all the same
		{"replicas", len(t.Replicas) > 0},
		{fieldImages, len(t.Images) > 0},
		{fieldReplacements, len(t.Replacements) > 0},
		{"transformers", len(t.Transformers) > 0},
	} {
		if f.set {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// changedLater are notes on objects that no longer are what the hash in their names was made of, at the file that was
// built right above the tegen that rendered them.
func (k *kustomization) changedLater(objects []runtime.Object) (notes finding.List) {
	for _, f := range render.Changed(objects) {
		at := k
		for below := k; below != nil; below = below.with(f) {
			at = below
		}
		f.Level = finding.Note
		notes = append(notes, f.At(relative(filepath.Join(at.dir, at.file))))
	}
	return notes
}

// with is the nested kustomization whose own output has a finding already, nil where none has.
func (k *kustomization) with(f finding.Finding) *kustomization {
	for _, below := range k.nested {
		objects, err := manifest.Read(below.dir, below.built)
		if err != nil {
			continue
		}
		for _, other := range render.Changed(objects) {
			if hash, _, _ := strings.Cut(f.Message, " "); strings.HasPrefix(other.Message, hash+" ") {
				return below
			}
		}
	}
	return nil
}

// configure adds to a kustomization the configurations and CRDs of folders, as files in memory: kustomize hands those
// of a base to whatever is built of it, and what is built of it here is a file.
func configure(t *types.Kustomization, files map[string][]byte, folders []*folder) error {
	add := func(list *[]string, f *folder, entries []string) error {
		*list = slices.Clone(*list)
		for _, entry := range entries {
			text, err := readRegular(filepath.Join(f.dir, entry))
			if err != nil {
				return fmt.Errorf("reading a configuration of %s: %w", relative(f.dir), err)
			}
			name := fmt.Sprintf("tegen-configuration-%d.yaml", len(files))
			*list, files[name] = append(*list, name), text
		}
		return nil
	}
	for _, f := range folders {
		if err := add(&t.Configurations, f, f.types.Configurations); err != nil {
			return err
		}
		if err := add(&t.Crds, f, f.types.Crds); err != nil {
			return err
		}
	}
	return nil
}
