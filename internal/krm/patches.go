package krm

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/schema"
)

// patchMark is the annotation by which kustomize itself says what the target of a patch selects.
const patchMark = "internal.tegen.dev/patch-"

// unmet finds the patches whose target selects nothing, which kustomize leaves out without a word. Jobs given from
// outside may be a part of those that the overlay is for, so with them it is a note; else it is an error.
func (k *kustomization) unmet(
	first types.Kustomization, files map[string][]byte, sources []schema.Source,
) (notes []string, err error) {
	targeted := map[int]bool{}
	for i, p := range first.Patches {
		if p.Target != nil {
			targeted[i] = true
		}
	}
	if len(targeted) == 0 {
		return nil, nil
	}
	variants := []variant{{first, files}}
	if len(sources) > 0 {
		variants = append(variants, given(first, sources))
	}
	for _, keep := range []bool{false, true} { // alone, and where an earlier patch makes what a later one selects
		for _, v := range variants {
			met, err := k.met(v, targeted, keep)
			if err != nil {
				return nil, err
			}
			maps.DeleteFunc(targeted, func(i int, _ bool) bool { return met[i] })
		}
		if len(targeted) == 0 {
			return nil, nil
		}
	}
	var errs []error
	for _, i := range slices.Sorted(maps.Keys(targeted)) {
		at, selects := k.position(i), targetText(first.Patches[i].Target)
		what := fmt.Sprintf("patches[%d]: nothing matches its target (%s), so it changes nothing", i, selects)
		notes = append(notes, at+": note: "+what)
		errs = append(errs, fmt.Errorf("%s: %s: mend the target, or remove the patch", at, what))
	}
	if len(sources) > 0 {
		return notes, nil
	}
	return nil, errors.Join(errs...)
}

// variant is a kustomization with files that exist in memory only.
type variant struct {
	types types.Kustomization
	files map[string][]byte
}

// met builds a variant with a mark in place of each targeted patch, or behind it, and returns the patches whose mark
// is somewhere.
func (k *kustomization) met(v variant, targeted map[int]bool, keep bool) (map[int]bool, error) {
	var patches []types.Patch
	for i, p := range v.types.Patches {
		if keep {
			patches = append(patches, p)
		}
		if targeted[i] {
			// What a merge patch is called does not matter where it has a target.
			text := "apiVersion: v1\nkind: Mark\nmetadata:\n  name: mark\n  annotations: {" + patchMark + strconv.Itoa(i) + ": met}\n"
			patches = append(patches, types.Patch{Patch: text, Target: p.Target})
		}
	}
	v.types.Patches = patches
	nodes, err := k.kustomize(v.types, v.files)
	if err != nil {
		return nil, err
	}
	met := map[int]bool{}
	for _, n := range nodes {
		for i := range targeted {
			if field(annotations(n), patchMark+strconv.Itoa(i)) != nil {
				met[i] = true
			}
		}
	}
	return met, nil
}

// position is where a patch stands in the overlay's file.
func (k *kustomization) position(patch int) string {
	path := filepath.Join(k.dir, k.file)
	text, err := readRegular(path)
	if err != nil {
		return relative(path)
	}
	root, err := yaml.Parse(string(text))
	if err != nil {
		return relative(path)
	}
	list := target(field(root.YNode(), "patches"))
	if list == nil || patch >= len(list.Content) {
		return relative(path)
	}
	return fmt.Sprintf("%s:%d:%d", relative(path), list.Content[patch].Line, list.Content[patch].Column)
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
