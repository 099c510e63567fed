package importer

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// stream is all objects of the input.
type stream struct {
	objects []*object
	notes   []Note
	invalid bool // a key stands twice in one of them, with two values, or a job was refused as a whole
}

func (s *stream) read(src schema.Source) {
	found, errs := manifest.ReadLoosely(src.Name, src.Data)
	isTemplate := len(errs) > 0 && bytes.Contains(src.Data, []byte("{{"))
	for _, err := range errs {
		file, why, _ := strings.Cut(err.Error(), ": ")
		if isTemplate {
			why += "; it has {{ }} of a template in it: import what the template makes"
		}
		s.notes = append(s.notes, Note{File: file, Verdict: Unread, Why: why})
	}
	for _, l := range found {
		o := newObject(l)
		if path, n := longList(o.Object, nil); n > 0 {
			s.notes = append(s.notes, Note{
				File: l.Stream(), Line: l.Line(path), Object: o.String(), Field: dotted(path), Verdict: Error,
				Why: fmt.Sprintf("has %d items, more than the limit of %d of a job: shorten the list", n,
					schema.MaxItems),
			})
			s.invalid = true
			continue
		}
		for _, t := range l.Duplicates {
			n := Note{File: l.Stream(), Line: t.Line, Object: o.String(), Field: dotted(t.Path)}
			n.Verdict, n.Why = Error, "the key stands twice in one mapping, with different values: the last one was "+
				"taken, leave one of them"
			if t.Same {
				n.Verdict, n.Why = Warning, "the key stands twice in one mapping, which strict readers refuse: both "+
					"say the same"
			}
			s.notes = append(s.notes, n)
			s.invalid = s.invalid || !t.Same
		}
		if notes := stringify(o.view()); len(notes) > 0 {
			s.notes = append(s.notes, notes...)
			o = newObject(l) // whose name may be among what was quoted
		}
		s.secrets(o.view())
		s.objects = append(s.objects, s.convert(o)...)
	}
}

// longList is the path of a list with more mappings than a list of a job may have, and their number. Import compares
// each item with each other, so it reads no such object.
func longList(value any, path []string) ([]string, int) {
	switch v := value.(type) {
	case tree:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if at, n := longList(v[key], append(path, key)); n > 0 {
				return at, n
			}
		}
	case []any:
		if len(v) > schema.MaxItems {
			if _, mappings := v[0].(tree); mappings {
				return path, len(v)
			}
		}
		for i, item := range v {
			if at, n := longList(item, append(path, fmt.Sprintf("[%d]", i))); n > 0 {
				return at, n
			}
		}
	}
	return nil, 0
}

// find returns an object by group, kind, namespace and name; no namespace is the default one.
func (s *stream) find(group, kind, namespace, name string) *object {
	for _, o := range s.objects {
		if o.is(group, kind) && o.name == name && sameNamespace(o.namespace, namespace) {
			return o
		}
	}
	return nil
}

func sameNamespace(a, b string) bool { return a == b || a+b == "default" }

// remaining says what became of the objects that are no workload themselves.
func (s *stream) remaining(drafts []*draft) (notes []Note) {
	for _, o := range s.objects {
		if o.draft != nil || o.reported {
			continue
		}
		if o.replacedBy != "" {
			notes = append(notes, o.replaced()...)
			continue
		}
		counterpart := rendered(drafts, o)
		if counterpart == nil {
			why := "not part of a training job: keep it beside"
			if fetch := prefetched(o, drafts); fetch != "" {
				why = fetch
			}
			if gk, name, ok := o.controller(); ok {
				why = fmt.Sprintf("%s %s makes it, which is not in the input", gk.Kind, name)
			}
			notes = append(notes, o.note(Beside, "%s", why))
			continue
		}
		for _, g := range gaps(o, counterpart) {
			notes = append(notes, g.note(o, g.reason()))
		}
	}
	return notes
}

// rendered is the object of that kind and name that a job renders, nil for none.
func rendered(drafts []*draft, o *object) tree {
	for _, d := range drafts {
		for _, r := range d.objects {
			v := view{value: r}
			if v.at("kind").text() == o.gvk.Kind && v.at("apiVersion").text() == o.gvk.GroupVersion().String() &&
				v.at("metadata", "name").text() == o.name &&
				sameNamespace(v.at("metadata", "namespace").text(), o.namespace) {
				return r
			}
		}
	}
	return nil
}
