package importer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// tree is a mapping as it was read.
type tree = map[string]any

// object is one Kubernetes object of the input.
type object struct {
	*manifest.Loose
	gvk             apischema.GroupVersionKind
	namespace, name string
	label           string              // what notes call it, where it was converted from another kind
	places          []place             // where its values stand in the input, where that is elsewhere
	synthetic       bool                // the input names it and does not hold it
	draft           *draft              // the draft whose workload it is part of, nil for none
	reported        bool                // a note says already that it could not be read
	replacedBy      string              // what is rendered in its place, in words, where that is of another kind
	replacement     func() tree         // the same in the object's own form, once it is rendered; nil for nothing
	translated      map[string]struct{} // paths whose meaning a draft keeps in another form, with all below them
}

func newObject(l *manifest.Loose) *object {
	o := &object{Loose: l, translated: map[string]struct{}{}}
	v := o.view()
	o.gvk = apischema.FromAPIVersionAndKind(v.at("apiVersion").text(), v.at("kind").text())
	o.name, o.namespace = v.at("metadata", "name").text(), v.at("metadata", "namespace").text()
	o.dropServerFields()
	return o
}

// dropServerFields drops what the cluster and its tools write for themselves.
func (o *object) dropServerFields() {
	delete(o.Object, "status")
	metadata, _ := o.Object["metadata"].(tree)
	for _, key := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"} {
		delete(metadata, key)
	}
	annotations, _ := metadata["annotations"].(tree)
	for _, key := range []string{"kubectl.kubernetes.io/last-applied-configuration", "batch.kubernetes.io/job-tracking"} {
		delete(annotations, key)
	}
}

// copy is the same object of the input with values of its own.
func (o *object) copy() *object {
	l := *o.Loose
	l.Object = clone(o.Object).(tree)
	return newObject(&l)
}

// is says whether the object is of a group and kind, of whatever version.
func (o *object) is(group, kind string) bool { return o.gvk.Group == group && o.gvk.Kind == kind }

func (o *object) String() string {
	if o.label != "" {
		return o.label
	}
	if o.name == "" {
		return o.gvk.Kind
	}
	if o.namespace == "" {
		return o.gvk.Kind + " " + o.name
	}
	return o.gvk.Kind + " " + o.namespace + "/" + o.name
}

func (o *object) view() view { return view{o, nil, o.Object} }

func (o *object) note(verdict Verdict, format string, args ...any) Note {
	return o.view().note(verdict, format, args...)
}

// view is a value of an object, which knows where it is. The zero view is nothing, and everything below it too.
type view struct {
	object *object
	path   []string // an index is "[0]"
	value  any
}

func (v view) at(keys ...string) view {
	for _, key := range keys {
		m, _ := v.value.(tree)
		v = view{v.object, append(v.path[:len(v.path):len(v.path)], key), m[key]}
	}
	return v
}

func (v view) items() []view {
	list, _ := v.value.([]any)
	out := make([]view, len(list))
	for i, item := range list {
		out[i] = view{v.object, append(v.path[:len(v.path):len(v.path)], "["+strconv.Itoa(i)+"]"), item}
	}
	return out
}

// item is the one whose key has a value.
func (v view) item(key, value string) view {
	for i, item := range listOf(v.value) { // without a view of each: lists may be long, and many items looked up
		if m, ok := item.(tree); ok && textOf(m[key]) == value {
			return view{v.object, append(v.path[:len(v.path):len(v.path)], "["+strconv.Itoa(i)+"]"), item}
		}
	}
	return view{object: v.object, path: v.path}
}

func (v view) isSet() bool { return v.value != nil }

// text is a scalar as its text, "" for anything else.
func (v view) text() string { return textOf(v.value) }

func textOf(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case nil, tree, []any:
		return ""
	default:
		return fmt.Sprint(x)
	}
}

func (v view) texts() []string {
	var out []string
	for _, item := range v.items() {
		out = append(out, item.text())
	}
	return out
}

func (v view) number() (int64, bool) {
	n, err := strconv.ParseInt(v.text(), 10, 64)
	return n, err == nil
}

func (v view) isTrue() bool { return v.value == true }

func (v view) mapping() tree {
	m, _ := v.value.(tree)
	return m
}

// key is the place, as sets have it.
func (v view) key() string { return v.object.String() + "\n" + strings.Join(v.path, "\n") }

// markTranslated says that a draft keeps the meaning of a value in another form, which the comparison would not find.
func (v view) markTranslated() {
	if v.isSet() {
		v.object.translated[strings.Join(v.path, "\n")] = struct{}{}
	}
}

// suppressReport is markTranslated for a value that is reported as an error elsewhere. A list of words is compared as one.
func (v view) suppressReport() {
	if n := len(v.path); n > 1 && strings.HasPrefix(v.path[n-1], "[") && !isTree(v.value) {
		v.path = v.path[:n-1]
	}
	v.markTranslated()
	if n := len(v.path); n > 0 && (v.path[n-1] == "command" || v.path[n-1] == "args") { // the words of one program
		for _, name := range []string{"command", "args"} {
			view{v.object, append(v.path[:n-1:n-1], name), true}.markTranslated()
		}
	}
}

func isTree(value any) bool {
	_, ok := value.(tree)
	return ok
}

// isTranslated says whether the meaning of a place is kept in another form.
func (o *object) isTranslated(steps []string) bool {
	for i := range steps {
		if _, ok := o.translated[strings.Join(steps[:i+1], "\n")]; ok {
			return true
		}
	}
	return false
}

func (v view) note(verdict Verdict, format string, args ...any) Note {
	value := ""
	if len(v.path) > 0 { // a whole object has its name
		value = summary(v.value)
	}
	if v.secret() {
		value = redacted
	}
	at := v.object.written(v.path)
	return Note{
		File: v.object.Stream(), Line: v.object.Line(at), Object: v.object.String(),
		Field: dotted(at), Value: value, Verdict: verdict, Why: fmt.Sprintf(format, args...),
	}
}

func dotted(path []string) string { return yamldoc.Path(path).String() }

// schemaErrors are the lines of an error of schema.Load.
func schemaErrors(err error) schema.Errors {
	var all schema.Errors
	if errors.As(err, &all) {
		return all
	}
	return nil
}
