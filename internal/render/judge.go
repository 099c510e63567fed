package render

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
)

// Judge checks rendered objects, whatever made or changed them: every reference resolves, and no policy is violated.
// The error is a finding.List. place, if any, is where what they are made of was written: file:line:column, a file or
// the name of an object.
func Judge(place string, objs []k8sruntime.Object, p *policy.Policy) error {
	return located(Findings(objs, p), place)
}

func located(list finding.List, place string) error {
	for i := range list {
		list[i] = list[i].At(place)
	}
	return list.Err()
}

// Findings are what Judge reports, without a place.
func Findings(objs []k8sruntime.Object, p *policy.Policy) (list finding.List) {
	for _, b := range refs.Check(objs) {
		list = append(list, b.Finding())
	}
	return append(list, Violations(objs, p)...)
}

// Violations are what a policy refuses of objects and of the pods that they make.
func Violations(objs []k8sruntime.Object, p *policy.Policy) (list finding.List) {
	if p == nil {
		return nil
	}
	for _, o := range objs {
		gvk, err := manifest.GVK(o)
		if err != nil {
			continue // reading or encoding it fails
		}
		if p.HasRulesFor(gvk.Kind, gvk.Group) {
			found, err := p.Object(gvk.Kind, gvk.Group, printed(o, gvk))
			list = append(list, violations(o, "policy/object", nil, found, err)...)
		}
		list = append(list, overridden(o, p)...)
		w := apis.WorkloadOf(o)
		if w == nil {
			list = append(list, unknownPods(o, nil, p)...)
			continue
		}
		if _, read := o.(*unstructured.Unstructured); read { // it may have templates that tegen does not render
			list = append(list, unknownPods(o, w, p)...)
		}
		for _, set := range w.PodSets() {
			if set.Path == "metadata" {
				continue // a controller makes these pods, and the object sets none of their fields
			}
			var path yamldoc.Path
			if set.Path != "" {
				path = yamldoc.ParsePath(set.Path)
			}
			found, err := p.Pod(set.Template)
			list = append(list, violations(o, "policy/pod", path, found, err)...)
		}
	}
	return list
}

func violations(o k8sruntime.Object, rule string, below yamldoc.Path, found []policy.Violation, err error,
) (list finding.List) {
	if err != nil {
		found = []policy.Violation{{Message: err.Error()}}
	}
	for _, v := range found {
		path := below.Add(v.Path...)
		list = append(list, finding.Finding{
			Rule: rule, Level: finding.Error, Object: id(o), Field: path.String(), Items: itemNames(o, path),
			Message: v.String(),
		})
	}
	return list
}

// itemNames are those of Finding.Items.
func itemNames(o k8sruntime.Object, path yamldoc.Path) string {
	content, err := contentOf(o)
	if err != nil {
		return ""
	}
	var value any = content
	var names []string
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(strings.Trim(step, "[]"))
			if err != nil || i >= len(v) {
				return strings.Join(names, " ")
			}
			value = v[i]
			item, _ := v[i].(map[string]any)
			name, _ := item["name"].(string)
			names = append(names, cmp.Or(name, "-"))
		default:
			return strings.Join(names, " ")
		}
	}
	return strings.Join(names, " ")
}

// Kind is a kind of object with its Go type.
type Kind struct {
	k8sschema.GroupVersionKind
	Type reflect.Type
}

// Kinds are those that policies constrain, by names such as Job and Job.batch.volcano.sh. A name without a group can be
// that of several kinds.
func Kinds() map[string][]Kind {
	kinds := map[string][]Kind{}
	add := func(k Kind) {
		if _, isObject := k.Type.FieldByName("ObjectMeta"); !isObject {
			return // such as ListOptions
		}
		kinds[k.Kind] = append(kinds[k.Kind], k)
		if k.Group != "" {
			kinds[k.Kind+"."+k.Group] = append(kinds[k.Kind+"."+k.Group], k)
		}
	}
	for gvk, t := range manifest.Types() {
		add(Kind{gvk, t})
	}
	for _, k := range apis.Kinds {
		add(Kind{k.GroupVersionKind, k.Type()})
	}
	for _, named := range kinds { // in an order that is always the same
		slices.SortFunc(named, func(a, b Kind) int { return strings.Compare(a.String(), b.String()) })
	}
	return kinds
}

// PolicyTypes are the Go types that policies constrain.
func PolicyTypes() policy.Types {
	kinds := Kinds()
	return policy.Types{
		Job: reflect.TypeFor[job.Job](), Pod: reflect.TypeFor[corev1.PodTemplateSpec](),
		Object: func(name string) (types []reflect.Type) {
			for _, k := range kinds[name] {
				types = append(types, k.Type)
			}
			return types
		},
		Kinds: slices.Sorted(maps.Keys(kinds)),
	}
}

// printed is an object as it is written to a file: with its kind, and without a status, which an API server ignores.
func printed(o k8sruntime.Object, gvk k8sschema.GroupVersionKind) any {
	content, err := contentOf(o)
	if err != nil {
		return o // encoding it fails
	}
	content = maps.Clone(content)
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	delete(content, "status")
	if m, ok := content["metadata"]; ok {
		content["metadata"] = storedMetadata(m)
	}
	return content
}

// storedMetadata is metadata as an API server stores it, without empty values, in custom resources too.
func storedMetadata(v any) any {
	content, ok := v.(map[string]any)
	if !ok {
		return v
	}
	var m metav1.ObjectMeta
	if err := k8sruntime.DefaultUnstructuredConverter.FromUnstructured(content, &m); err != nil {
		return v // the server refuses it
	}
	stored, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(&m)
	if err != nil {
		return v
	}
	return stored
}

// unknownPods are the violations of pods that are not those of a workload, which may be nil: of each mapping of an
// object with a list of containers.
func unknownPods(o k8sruntime.Object, w apis.Workload, p *policy.Policy) (list finding.List) {
	if _, read := o.(*unstructured.Unstructured); !p.HasPodRules() || !read && !hasContainers(reflect.TypeOf(o)) {
		return nil
	}
	content, err := contentOf(o)
	if err != nil {
		return violations(o, "policy/pod", nil, nil, err)
	}
	walk(content, nil, func(m map[string]any, path yamldoc.Path) {
		if _, ok := m["containers"].([]any); !ok {
			return
		}
		template, below := map[string]any{"spec": m}, path
		inSpec := len(path) > 0 && path[len(path)-1] == "spec"
		if inSpec {
			below = path[:len(path)-1]
			if parent, ok := at(content, below); ok {
				template["metadata"] = parent["metadata"]
			}
		}
		if w != nil && slices.ContainsFunc(w.PodSets(), func(s apis.PodSet) bool { return s.Path == below.String() }) {
			return
		}
		found, err := p.Pod(template)
		if !inSpec { // a pod's spec alone: it has no metadata, and its fields are those of the mapping
			found = slices.DeleteFunc(found, func(v policy.Violation) bool { return v.Path[0] != "spec" })
			for i := range found {
				found[i].Path = found[i].Path[1:]
			}
		}
		list = append(list, violations(o, "policy/pod", below, found, err)...)
	})
	return list
}

// withContainers says of types whether hasContainers holds.
var withContainers sync.Map

// hasContainers reports whether values of a type can have pods somewhere: most kinds cannot.
func hasContainers(t reflect.Type) bool {
	if has, ok := withContainers.Load(t); ok {
		return has.(bool)
	}
	seen := map[reflect.Type]bool{}
	var search func(t reflect.Type) bool
	search = func(t reflect.Type) bool {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			return search(t.Elem())
		case reflect.Interface:
			return true // it can have any type
		case reflect.Struct:
			if seen[t] {
				return false
			}
			seen[t] = true
			for f := range t.Fields() {
				if strings.HasPrefix(f.Tag.Get("json"), "containers") || f.IsExported() && search(f.Type) {
					return true
				}
			}
		}
		return false
	}
	has := search(t)
	withContainers.Store(t, has)
	return has
}

// overrides are fields of a TrainJob. Its controller applies them to pods after tegen has checked these.
var overrides = []string{"podTemplateOverrides", "runtimePatches"}

// overridden refuses such fields if a policy has rules for pods.
func overridden(o k8sruntime.Object, p *policy.Policy) (list finding.List) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || !p.HasPodRules() {
		return nil
	}
	refuse := func(path yamldoc.Path) {
		list = append(list, finding.Finding{
			Rule: "policy/pod", Level: finding.Error, Object: id(o), Field: path.String(),
			Message: "changes pods in the cluster, where tegen cannot check them against the policy; remove it",
		})
	}
	walk(u.Object, nil, func(m map[string]any, path yamldoc.Path) {
		for _, name := range overrides {
			if _, ok := m[name]; ok {
				refuse(path.Add(name))
			}
		}
	})
	if u.GroupVersionKind().GroupKind() != apis.TrainJobKind.GroupKind() {
		return list
	}
	trainer, _, _ := unstructured.NestedMap(u.Object, "spec", "trainer") // of another type its definition refuses it
	for _, name := range slices.Sorted(maps.Keys(trainer)) {
		if name != "numNodes" && name != "numProcPerNode" {
			refuse(yamldoc.Path{"spec", "trainer", name})
		}
	}
	if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "initializer"); ok {
		refuse(yamldoc.Path{"spec", "initializer"})
	}
	return list
}

// contentOf is an object as JSON values.
func contentOf(o k8sruntime.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return k8sruntime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// walk calls f for every mapping in a value.
func walk(v any, path yamldoc.Path, f func(m map[string]any, path yamldoc.Path)) {
	switch v := v.(type) {
	case map[string]any:
		f(v, path)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], path.Add(key), f)
		}
	case []any:
		for i, item := range v {
			walk(item, path.Index(i), f)
		}
	}
}

// at is the mapping at a path of keys.
func at(m map[string]any, path yamldoc.Path) (map[string]any, bool) {
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			return nil, false
		}
		m = next
	}
	return m, true
}
