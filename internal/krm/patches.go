package krm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// patchMark is the field by which kustomize itself says what the target of a patch selects. It is one of the object, so
// that a JSON patch can add it to whatever is there: for a merge patch kustomize reads its OpenAPI schema, which takes
// longer than to render a hundred jobs.
const patchMark = "tegen-patch-"

// targetedPatch is a patch with a target, and its position.
type targetedPatch struct {
	folder *folder
	list   string // the field of the kustomization
	index  int
	target *types.Selector

	replacement *types.Replacement // whose target it is, alone
}

// folder is a kustomization that is a part of an overlay.
type folder struct {
	dir, file string
	types     types.Kustomization
	component bool // many overlays may use it, and not all have what each of its patches is for
}

// fields of a kustomization whose patches may select nothing. One of patchesStrategicMerge, which names its object, is
// an error of kustomize's own then.
const (
	fieldPatches = "patches"
	fieldJSON    = "patchesJson6902"
)

// unmatched finds the patches whose target selects nothing, which kustomize leaves out without a word: those of the
// overlay, and of the bases and components that it is built of. Jobs given from outside may be a part of those that the
// overlay is for, so with them it is a note, as it is of a component; else it is an error. items are what was built.
func (k *kustomization) unmatched(v variant, sources []schema.Source, items []*yaml.Node) (notes finding.List,
	err error,
) {
	open := map[int]targetedPatch{}
	folders := k.folders(v.types)
	if notes, err = k.idleImages(v, sources, items, folders); err != nil {
		return nil, err
	}
	notes = append(notes, passedBy(sources, folders)...)
	for i, a := range slices.Concat(targetedPatches(folders), replacementTargets(folders)) {
		if a.folder != folders[0] || a.list != fieldPatches || !k.selects(a.target, items) {
			open[i] = a
		}
	}
	if len(open) == 0 {
		return notes, nil
	}
	if err := k.closeMatched(v, sources, open, folders); err != nil {
		return nil, err
	}
	var errs finding.List
	for _, i := range slices.Sorted(maps.Keys(open)) {
		a := open[i]
		what := fmt.Sprintf("%s[%d]: nothing matches its target (%s), so it changes nothing", a.list, a.index,
			targetText(a.target))
		f := finding.Finding{Rule: "overlay/patch", Level: finding.Note, Message: what}
		if a.folder.component || len(sources) > 0 {
			notes = append(notes, f.At(a.position()))
		} else {
			f.Level = finding.Error
			errs = append(errs, f.With(": "+k.remedy(a)).At(a.position()))
		}
	}
	return notes, errs.Err()
}

// selects says of a patch of the overlay itself whether one of the things that were built was surely its target: the
// kind is the same, and so is the name with the prefix and suffix. It spares most overlays a second build.
func (k *kustomization) selects(s *types.Selector, items []*yaml.Node) bool {
	if s.Namespace+s.LabelSelector+s.AnnotationSelector != "" { // which may have changed behind the patch
		return false
	}
	is := func(want, got string) bool { return want == "" || want == got }
	return slices.ContainsFunc(items, func(n *yaml.Node) bool {
		group, version, ok := strings.Cut(apiVersion(n), "/")
		if !ok {
			group, version = "", group
		}
		return is(s.Group, group) && is(s.Version, version) && is(s.Kind, kind(n)) &&
			(s.Name == "" || k.types.NamePrefix+s.Name+k.types.NameSuffix == name(n))
	})
}

// targetedPatches are the patches with a target of folders.
func targetedPatches(folders []*folder) (all []targetedPatch) {
	for _, f := range folders {
		for i, p := range f.types.Patches {
			if p.Target != nil {
				all = append(all, targetedPatch{folder: f, list: fieldPatches, index: i, target: p.Target})
			}
		}
		for i, p := range f.types.PatchesJson6902 { //nolint:staticcheck // deprecated, and read all the same
			if p.Target != nil {
				all = append(all, targetedPatch{folder: f, list: fieldJSON, index: i, target: p.Target})
			}
		}
	}
	return all
}

// folders are a kustomization of these fields and all that it is built of.
func (k *kustomization) folders(t types.Kustomization) []*folder {
	return (&folder{dir: k.dir, file: k.file, types: t}).withBelow(map[string]bool{})
}

// withBelow are a folder and those that are built with it. seen are the folders so far.
func (f *folder) withBelow(seen map[string]bool) []*folder {
	all := []*folder{f}
	for i, entry := range slices.Concat(f.types.Resources, f.types.Components) {
		dir, err := filepath.EvalSymlinks(filepath.Join(f.dir, entry)) // as kustomize names it
		if err != nil || seen[dir] {
			continue // what is rendered already is in memory alone
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		seen[dir] = true
		below := &folder{dir: dir, component: f.component || i >= len(f.types.Resources)}
		if below.file, below.types, err = readFile(dir); err == nil && below.file != "" {
			all = append(all, below.withBelow(seen)...)
		}
	}
	return all
}

// variant is a kustomization with files that exist in memory only.
type variant struct {
	types types.Kustomization
	files map[string][]byte
	given map[string]string // the names of files from outside, by those that they have here
}

// closeMatched takes those patches out of the open ones that select something: alone, or what an earlier patch makes.
// Selectors ask for nothing of a spec, so jobs without theirs are tried first, and of these the ones that seem to be
// meant.
func (k *kustomization) closeMatched(v variant, sources []schema.Source, open map[int]targetedPatch,
	folders []*folder,
) error {
	others := 0 // that are left out while patches are tried alone
	for _, f := range folders {
		others += len(f.types.Patches)
	}
	for _, a := range open {
		if a.list == fieldPatches && len(open) == 1 {
			others--
		}
	}
	short, some := outlines(sources)
	if some {
		if matched, err := k.matched(v, candidates(short, open), open, false, nil); err == nil {
			maps.DeleteFunc(open, func(i int, _ targetedPatch) bool { return matched[i] })
		}
	}
	if len(open) == 0 {
		return nil
	}
	matched, err := k.matched(v, short, open, false, nil)
	if err != nil && some { // something reads specs
		matched, err = k.matched(v, sources, open, false, nil)
	}
	if err != nil && others == 0 { // else something may read what a patch writes
		return err
	}
	maps.DeleteFunc(open, func(i int, _ targetedPatch) bool { return matched[i] })
	if len(open) == 0 || others == 0 {
		return nil
	}
	matched, err = k.matched(v, sources, open, true, nil)
	maps.DeleteFunc(open, func(i int, _ targetedPatch) bool { return matched[i] })
	return err
}

// candidates are one job for each open patch that selects it as it is written, which others may have changed before.
func candidates(short []schema.Source, open map[int]targetedPatch) (found []schema.Source) {
	left := maps.Clone(open)
	for _, src := range short {
		for _, doc := range yamldoc.Split(src.Name, src.Data) {
			if len(left) == 0 {
				return found
			}
			n, err := doc.Parse()
			if err != nil || n == nil || kind(n) != names.KindTrainingJob {
				continue
			}
			before := len(left)
			maps.DeleteFunc(left, func(_ int, a targetedPatch) bool { return seemsMeant(a.target, yaml.NewRNode(n)) })
			if len(left) < before {
				found = append(found, schema.Source{Name: src.Name, Data: doc.Text})
			}
		}
	}
	return found
}

// seemsMeant asks kustomize's own selectors.
func seemsMeant(s *types.Selector, n *yaml.RNode) bool {
	r, err := types.NewSelectorRegex(s)
	if err != nil || !r.MatchGvk(resid.GvkFromNode(n)) || !r.MatchName(n.GetName()) ||
		!r.MatchNamespace(resid.FromRNode(n).EffectiveNamespace()) {
		return false
	}
	labels, err := n.MatchesLabelSelector(s.LabelSelector)
	if err != nil || !labels {
		return false
	}
	annotations, err := n.MatchesAnnotationSelector(s.AnnotationSelector)
	return err == nil && annotations
}

// matched builds a variant with a mark in place of each open patch, or behind it, and the same with the jobs from
// outside in place of its resources. It returns the patches whose mark is somewhere. visit, if any, gets what is built.
func (k *kustomization) matched(v variant, sources []schema.Source, open map[int]targetedPatch, keep bool,
	visit func(*yaml.Node),
) (map[int]bool, error) {
	v, err := k.markAll(v, open, keep)
	if err != nil {
		return nil, err
	}
	own, err := k.withoutNamed(v, sources)
	if err != nil {
		return nil, err
	}
	matched := map[int]bool{}
	look := func(v variant) error {
		nodes, err := k.kustomize(v.types, v.files)
		for _, n := range nodes {
			for i, a := range open {
				if a.isMarked(n, patchMark+strconv.Itoa(i)) {
					matched[i] = true
				}
			}
			if visit != nil {
				visit(n)
			}
		}
		return err
	}
	if err := look(own); err != nil {
		return nil, err
	}
	for v, err := range k.withSources(v, sources, groupSize) {
		all := visit == nil && len(matched) == len(open)
		if err == nil && !all {
			err = look(v)
		}
		if err != nil || all {
			return matched, err
		}
	}
	return matched, nil
}

// markAll marks patches in all files of a variant.
func (k *kustomization) markAll(v variant, open map[int]targetedPatch, keep bool) (variant, error) {
	of := map[string]map[int]targetedPatch{}
	folders := map[string]*folder{}
	for i, a := range open {
		if of[a.folder.dir] == nil {
			of[a.folder.dir] = map[int]targetedPatch{}
		}
		of[a.folder.dir][i], folders[a.folder.dir] = a, a.folder
	}
	v.files = maps.Clone(v.files)
	for dir, f := range folders {
		if dir == k.dir {
			v.types = marked(v.types, of[dir], keep)
			continue
		}
		text, err := sigsyaml.Marshal(marked(f.types, of[dir], keep))
		if err != nil {
			return v, fmt.Errorf("building %s: %w", k.dir, err)
		}
		name, err := filepath.Rel(k.dir, filepath.Join(dir, f.file))
		if err != nil {
			return v, fmt.Errorf("building %s: %w", k.dir, err)
		}
		v.files[name] = text
	}
	return v, nil
}

// marked is a kustomization with marks for some of its patches. Those for patchesJson6902 go into transformers, which
// run behind them.
func marked(t types.Kustomization, open map[int]targetedPatch, keep bool) types.Kustomization {
	mark := func(list string, index int) (text string, is bool) {
		for i, a := range open {
			if a.list == list && a.index == index {
				return `[{"op": "add", "path": "/` + patchMark + strconv.Itoa(i) + `", "value": "matched"}]`, true
			}
		}
		return "", false
	}
	var patches []types.Patch
	for i, p := range t.Patches {
		if keep {
			patches = append(patches, p)
		}
		if text, is := mark(fieldPatches, i); is {
			patches = append(patches, types.Patch{Patch: text, Target: p.Target})
		}
	}
	t.Patches = patches
	for i, p := range t.PatchesJson6902 { //nolint:staticcheck // deprecated, and read all the same
		if text, is := mark(fieldJSON, i); is {
			t.Transformers = append(slices.Clone(t.Transformers), transformer(text, p.Target, i))
		}
	}
	return markOthers(t, open)
}

// transformer is a patch as kustomize's own plugin.
func transformer(patch string, target *types.Selector, i int) string {
	text, err := sigsyaml.Marshal(map[string]any{
		"apiVersion": "builtin", "kind": "PatchTransformer", "metadata": map[string]string{"name": "mark-" +
			strconv.Itoa(i)},
		"patch": patch, "target": target,
	})
	if err != nil {
		panic(err) // texts alone
	}
	return string(text)
}

// position is that of a patch in its file.
func (a targetedPatch) position() string {
	return positionIn(filepath.Join(a.folder.dir, a.folder.file), a.list, a.index)
}

// targetText is a target as it is written, without what it leaves open.
func targetText(s *types.Selector) string {
	var out []string
	for _, f := range [][2]string{
		{"group", s.Group},
		{"version", s.Version},
		{"kind", s.Kind},
		{"name", s.Name},
		{"namespace", s.Namespace},
		{"labelSelector", s.LabelSelector},
		{"annotationSelector", s.AnnotationSelector},
	} {
		if f[1] != "" {
			out = append(out, f[0]+": "+f[1])
		}
	}
	return strings.Join(out, ", ")
}
