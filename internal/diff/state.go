package diff

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// object is one as it is compared.
type object struct {
	Ref
	group        string
	fields       map[string]any // without status and what a server writes into metadata
	status       map[string]any
	live         bool // a server printed it
	blind        bool // it is live and does not say which of its fields somebody applied
	owned        bool // it has an owner, whose controller made it
	job          string
	jobNamespace string
	version      string // of tegen that rendered it, of which input
	input        string
	applied      []tree // the fields that whoever applied it had, of one that is live
}

// key is what an API server takes for one object, whatever its version.
type key struct{ namespace, group, kind, name string }

func (o *object) key() key { return keyOf(o.Namespace, o.group, o.Kind, o.Name) }

// keyOf is the key of an object: what names no namespace is made in default, or is of a kind that has none.
func keyOf(namespace, group, kind, name string) key {
	if namespace == "default" {
		namespace = ""
	}
	return key{namespace, group, kind, name}
}

// is says whether the object is of a kind, as Kind or Kind.group.
func (o *object) is(kind string) bool {
	name, group, _ := strings.Cut(kind, ".")
	return o.Kind == name && o.group == group
}

// state is all objects of one side.
type state struct{ objects map[key]*object }

func newState(side string, all []map[string]any) (*state, error) {
	s := &state{map[key]*object{}}
	for _, fields := range all {
		o, err := newObject(fields)
		if err != nil {
			return nil, fmt.Errorf("the %s objects: %w", side, err)
		}
		if s.objects[o.key()] != nil {
			in := ""
			if o.Namespace != "" {
				in = " in namespace " + o.Namespace
			}
			return nil, fmt.Errorf("the %s objects have %s%s twice: name the directory of one place, such as "+
				"rendered/eks", side, o.Ref, in)
		}
		s.objects[o.key()] = o
	}
	return s, nil
}

func (s *state) keys() []key {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name))
	})
}

// find is the object of a kind and name.
func (s *state) find(kind, namespace, name string) *object {
	kind, group, _ := strings.Cut(kind, ".")
	return s.objects[keyOf(namespace, group, kind, name)]
}

// leaveOut forgets the live objects that the other side does not have and that nobody rendered: what controllers made,
// and what others applied.
func (s *state) leaveOut(other *state) {
	for k, o := range s.objects {
		if o.live && other.objects[k] == nil && (o.owned || o.job == "" && text(o.labels()[names.LabelManagedBy]) !=
			names.ManagedBy) {
			delete(s.objects, k)
		}
	}
}

func newObject(written map[string]any) (*object, error) {
	fields := without(written, "status")
	meta := mapping(fields["metadata"])
	version, kind, name := text(fields["apiVersion"]), text(fields["kind"]), text(meta["name"])
	if version == "" || kind == "" || name == "" {
		return nil, fmt.Errorf("one has no apiVersion, kind or metadata.name: %s %s %s", version, kind, name)
	}
	o := &object{Ref: Ref{version, kind, text(meta["namespace"]), name}, status: mapping(written["status"])}
	if group, _, found := strings.Cut(version, "/"); found {
		o.group = group
	}
	o.live = isLive(meta) || len(o.status) > 0
	o.owned = len(items(meta["ownerReferences"])) > 0
	if o.live {
		o.applied = applied(meta)
		o.blind = meta["managedFields"] == nil && text(mapping(meta["annotations"])[lastApplied]) == ""
	}
	clean := without(meta, "managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences")
	if text(clean["namespace"]) == "default" {
		delete(clean, "namespace")
	}
	if annotations := mapping(clean["annotations"]); annotations != nil {
		clean["annotations"] = o.takeRecord(without(annotations, lastApplied))
		if len(mapping(clean["annotations"])) == 0 {
			delete(clean, "annotations")
		}
	}
	fields["metadata"] = clean
	if o.is("Secret") {
		fields = encoded(fields)
	}
	o.fields = fields
	o.job = names.JobOf(func(key string) string { return text(o.labels()[key]) })
	o.jobNamespace = text(o.labels()[names.LabelNamespace])
	return o, nil
}

func (o *object) labels() map[string]any      { return mapping(o.at("metadata", "labels")) }
func (o *object) annotations() map[string]any { return mapping(o.at("metadata", "annotations")) }

// at is the value at a path of mappings.
func (o *object) at(path ...string) any { return at(o.fields, path...) }

func at(value any, path ...string) any {
	for _, step := range path {
		value = mapping(value)[step]
	}
	return value
}

// encoded is a Secret whose stringData is in its data, as a server stores it.
func encoded(fields map[string]any) map[string]any {
	plain := mapping(fields["stringData"])
	if plain == nil {
		return fields
	}
	data := map[string]any{}
	maps.Copy(data, mapping(fields["data"]))
	for k, v := range plain {
		data[k] = base64.StdEncoding.EncodeToString([]byte(text(v)))
	}
	out := without(fields, "stringData")
	out["data"] = data
	return out
}

// without is a copy of a mapping less some keys.
func without(m map[string]any, keys ...string) map[string]any {
	out := maps.Clone(m)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

func mapping(v any) map[string]any { m, _ := v.(map[string]any); return m }
func items(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string            { s, _ := v.(string); return s }
func yes(v any) bool               { b, _ := v.(bool); return b }

func version(minor int) string { return fmt.Sprintf("1.%d", minor) }
