package krm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/render"
)

// partial checks what some of the generators made, together with what others made and what is beside it. References to
// what the other generators make are noted, since something else has to make that. Generators that make nothing of any
// job are a mistake.
func partial(of generators.Set, bundles, others []render.Bundle, beside []*yaml.Node, only []string,
) (notes []string, err error) {
	if len(only) == 0 || len(bundles) == 0 {
		return nil, nil
	}
	if notes, err = idle(of, bundles, only); err != nil {
		return nil, err
	}
	set := objectSet{names: map[string]bool{}}
	for _, b := range bundles {
		if err := set.addBundle(b); err != nil {
			return nil, err
		}
	}
	made := maps.Clone(set.names)
	for _, b := range others {
		if err := set.addBundle(b); err != nil {
			return nil, err
		}
	}
	if err := set.add(applied(beside)); err != nil {
		return nil, err
	}
	elsewhere := set.missing(made)
	if len(elsewhere) == 0 {
		return notes, nil
	}
	by, err := set.makers(of, bundles, made)
	if err != nil {
		return nil, err
	}
	said := map[string]bool{}
	for _, broken := range elsewhere {
		if said[broken.To] {
			continue
		}
		said[broken.To] = true
		remedy := "render it in another run of tegen, or leave generators out for all of them"
		if name := by[broken.To]; name != "" {
			remedy = "add " + name + ", which renders it, or run that generator separately"
		}
		notes = append(notes, fmt.Sprintf("%s: %s: %s is expected from elsewhere, because spec.generators is %s; %s",
			broken.From, broken.Field, broken.To, strings.Join(only, ", "), remedy))
	}
	return notes, nil
}

// idle notes the jobs of which nothing is rendered. It is an error if that is all of them.
func idle(set generators.Set, bundles []render.Bundle, only []string) (notes []string, err error) {
	ran := map[string]bool{}
	var without []string
	for _, b := range bundles {
		for _, f := range b.Files {
			ran[f.Concern] = true
		}
		if len(b.Files) == 0 {
			without = append(without, b.Summary.Name)
		}
	}
	var why []string
	for _, name := range only {
		if fields := set.Needs(name); !ran[name] && fields != "" {
			why = append(why, fmt.Sprintf("%s needs fields such as spec: {%s}", name, fields))
		} else if !ran[name] {
			why = append(why, name+" is turned off by fields of the job")
		}
	}
	list := strings.Join(only, ", ")
	if len(without) == len(bundles) {
		return nil, fmt.Errorf("spec.generators: %s: nothing is rendered of %s: %s; set them, or name other generators",
			list, few(without), strings.Join(why, ", "))
	}
	if len(without) > 0 {
		notes = append(notes, fmt.Sprintf("spec.generators: %s: nothing is rendered of %s", list, few(without)))
	}
	return notes, nil
}

// objectSet is objects without those of one name.
type objectSet struct {
	objects []runtime.Object
	names   map[string]bool
}

func (s *objectSet) add(objects []runtime.Object) error {
	for _, obj := range objects {
		name, err := objectName(obj)
		if err != nil {
			return err
		}
		if !s.names[name] {
			s.objects, s.names[name] = append(s.objects, obj), true
		}
	}
	return nil
}

func (s *objectSet) addBundle(b render.Bundle) error {
	objects, err := read(b)
	if err != nil {
		return err
	}
	return s.add(objects)
}

// missing are the references of some objects of the set that do not resolve.
func (s *objectSet) missing(of map[string]bool) []refs.Broken {
	return slices.DeleteFunc(refs.Check(s.objects), func(b refs.Broken) bool { return !of[b.From] })
}

// makers are the generators that would make what references of some objects lead to, by the target of the reference.
func (s *objectSet) makers(set generators.Set, bundles []render.Bundle, of map[string]bool,
) (map[string]string, error) {
	by := map[string]string{}
	for _, name := range set.Names() {
		with := objectSet{slices.Clone(s.objects), maps.Clone(s.names)}
		for _, b := range bundles {
			for _, concern := range b.Left {
				if concern.Name == name {
					if err := with.add(concern.Objects); err != nil {
						return nil, err
					}
				}
			}
		}
		if len(with.objects) == len(s.objects) {
			continue
		}
		still := map[string]bool{}
		for _, broken := range with.missing(of) {
			still[broken.To] = true
		}
		for _, broken := range s.missing(of) {
			if by[broken.To] == "" && !still[broken.To] {
				by[broken.To] = name
			}
		}
	}
	return by, nil
}

// objectName is what a reference names an object by.
func objectName(obj runtime.Object) (string, error) {
	gvk, err := manifest.GVK(obj)
	if err != nil {
		return "", err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("naming a %s: %w", gvk.Kind, err)
	}
	return gvk.Kind + " " + m.GetNamespace() + "/" + m.GetName(), nil
}

// applied are the items that are objects for a cluster. What cannot be decoded is left out: only references to it are
// looked for.
func applied(items []*yaml.Node) (objects []runtime.Object) {
	for _, n := range items {
		if isLocal(n) || isInput(n) {
			continue
		}
		docs, err := texts([]*yaml.Node{n})
		if err != nil {
			continue
		}
		if read, err := manifest.ReadPrinted(title(n), []byte(docs[0])); err == nil {
			objects = append(objects, read...)
		}
	}
	return objects
}
