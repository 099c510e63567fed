package admission

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/render"
)

// template is where a kind of object has pod templates: names of fields, with [] for every item of a list and * for
// every field of a mapping.
type template struct {
	gvk  schema.GroupVersionKind
	path []string // empty for a Pod, which is its own template
}

// allTemplates are those of every kind, in the order of their paths.
func allTemplates() (all []template) {
	for name, kinds := range render.Kinds() {
		for _, k := range kinds {
			if name != k.Kind { // also known by its group
				continue
			}
			if k.Type == reflect.TypeFor[corev1.Pod]() {
				all = append(all, template{k.GroupVersionKind, nil})
			}
			for _, path := range templatesIn(k.Type, nil) {
				all = append(all, template{k.GroupVersionKind, path})
			}
		}
	}
	slices.SortFunc(all, func(a, b template) int {
		return cmp.Or(slices.Compare(a.path, b.path), strings.Compare(a.gvk.String(), b.gvk.String()))
	})
	return all
}

// templatesIn are the paths of pod templates in the JSON of a type.
func templatesIn(t reflect.Type, path []string) (paths [][]string) {
	if t == reflect.TypeFor[corev1.PodTemplateSpec]() {
		return [][]string{slices.Clone(path)}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return templatesIn(t.Elem(), path)
	case reflect.Slice:
		return templatesIn(t.Elem(), append(slices.Clone(path), "[]"))
	case reflect.Map:
		return templatesIn(t.Elem(), append(slices.Clone(path), "*"))
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			below := slices.Clone(path)
			if name != "" {
				below = append(below, name)
			}
			paths = append(paths, templatesIn(t.Field(i).Type, below)...)
		}
	}
	return paths
}

// podKinds are the kinds that have pods.
func podKinds() (resources []schema.GroupVersionResource) {
	for _, t := range allTemplates() {
		resources = append(resources, resourceOf(t.gvk))
	}
	return slices.Compact(resources)
}

// podsOf is the expression for the list of an object's pod templates. A part that an object lacks is an empty mapping.
// For any other kind, which the policy does not match, it fails, and the object is denied.
func podsOf(object string) string {
	at := map[string][]string{} // kinds by the expression for their templates
	var order []string
	for _, t := range allTemplates() {
		list := listOf(object, t.path)
		if at[list] == nil {
			order = append(order, list)
		}
		apiVersion, kind := t.gvk.ToAPIVersionAndKind()
		at[list] = append(at[list], fmt.Sprintf("'%s %s'", apiVersion, kind))
	}
	var b strings.Builder
	for _, list := range order {
		fmt.Fprintf(&b, "%[1]s.apiVersion + ' ' + %[1]s.kind in [%[2]s] ? %[3]s : ", object,
			strings.Join(at[list], ", "), list)
	}
	return b.String() + "[" + object + ".kindWithoutPods]"
}

// listOf is the expression for the templates at a path.
func listOf(value string, path []string) string {
	if len(path) == 0 {
		return "[" + value + "]"
	}
	marker := slices.IndexFunc(path, func(name string) bool { return name == "[]" || name == "*" })
	if marker < 0 {
		return "[" + optional(value, path, "{}") + "]"
	}
	of, below := path[:marker], path[marker+1:]
	if path[marker] == "[]" {
		return fmt.Sprintf("%s.map(i, %s)", optional(value, of, "[]"), optional("i", below, "{}"))
	}
	return fmt.Sprintf("%s.map(k, %s)", optional(value, of, "{}"),
		optional(strings.Join(append([]string{value}, of...), ".")+"[k]", below, "{}"))
}

// optional is the expression for the value at a path without lists, or for an empty one.
func optional(value string, path []string, empty string) string {
	return strings.Join(append([]string{value}, path...), ".?") + ".orValue(" + empty + ")"
}
