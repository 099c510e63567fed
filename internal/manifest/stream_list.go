package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// list is a list that is being read.
type list struct {
	head
	count   int
	pending []pending
}

// pending is an item without a kind, before that of the list is known: kubectl prints it last.
type pending struct {
	doc  document
	text []byte
}

// ofItems is what a list says of its items: a PodList holds Pods.
func (l *list) ofItems() (h head) {
	if kind, ok := strings.CutSuffix(l.kind, listSuffix); ok && kind != "" {
		h = head{l.apiVersion, kind}
	}
	return h
}

// item reads an item of a list, of which text is the JSON. What is wrong is found in d.
func (s *stream) item(l *list, d document, text []byte) error {
	l.count++
	h, err := headOf(text)
	if err != nil {
		return d.syntaxError(err)
	}
	if h == (head{}) && l.kind == "" {
		d.Text = bytes.Clone(d.Text)
		l.pending = append(l.pending, pending{d, bytes.Clone(text)})
		return nil
	}
	return s.object(l, d, h, text)
}

// end is when a list is read but for items that waited for its kind. d is the list without its items.
func (s *stream) end(l *list, d document) error {
	text, err := d.json(d.StrictJSON)
	if err != nil {
		return err
	}
	if l.head, err = headOf(text); err != nil {
		return d.syntaxError(err)
	}
	if l.count == 0 || l.apiVersion == "" || !strings.HasSuffix(l.kind, listSuffix) {
		return s.decoded(d, text) // it is no list, but perhaps an empty one
	}
	for _, p := range l.pending {
		if err := s.object(l, p.doc, head{}, p.text); err != nil {
			return err
		}
	}
	return nil
}

// object hands on an object: an item of a list, or that of a document.
func (s *stream) object(l *list, d document, h head, text []byte) (err error) {
	if l != nil && h == (head{}) {
		h = l.ofItems()
		text = h.addTo(text)
	}
	var fields Fields
	known := false
	if h.apiVersion == "v1" {
		fields, known = s.fields[h.kind]
	}
	if s.short, err = condense(s.short[:0], text, fields); err != nil {
		return d.syntaxError(err)
	}
	if known {
		obj, err := newTyped(schema.GroupVersion{Version: h.apiVersion}.WithKind(h.kind))
		if err != nil {
			return err
		}
		if obj != nil {
			if field, err := quantity.CheckJSON(reflect.TypeOf(obj), s.short); err != nil {
				return d.errorAt(field, fmt.Errorf("reading %s: %s: %w", d.title(h.kind, s.short), field, err))
			}
		}
		if obj != nil && kjson.UnmarshalCaseSensitivePreserveInts(s.short, obj) == nil {
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			return s.hand(obj)
		}
	}
	return s.decoded(d, text)
}

// hand hands on an object.
func (s *stream) hand(obj runtime.Object) error {
	s.handed++
	return s.each(obj)
}

// whole hands on all of a document.
func (s *stream) whole(d document) error {
	text, err := d.json(d.StrictJSON)
	switch {
	case err != nil:
		return err
	case string(text) == "null":
		return nil
	case text[0] != '{':
		return d.errorAt(nil, errors.New("reading a document: want a mapping with apiVersion and kind"))
	}
	return s.decoded(d, text)
}

// decoded hands on all that a JSON text describes, or says what is wrong with it.
func (s *stream) decoded(d document, text []byte) error {
	objects, err := d.decode(nil, nil, text)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		items := []runtime.Object{obj}
		if _, ok := typedGVK(obj); ok && meta.IsListType(obj) {
			if items, err = meta.ExtractList(obj); err != nil {
				return d.errorAt(nil, err)
			}
		}
		for _, item := range items {
			if err := s.hand(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// document is a part of the stream.
func (s *stream) document(text []byte, line int) document {
	return document{yamldoc.Document{Stream: s.name, Line: line, Text: text}, true, true}
}

// head is what says of which kind an object is.
type head struct{ apiVersion, kind string }

// addTo puts it into the JSON of an object that lacks it.
func (h head) addTo(text []byte) []byte {
	rest := bytes.TrimLeft(bytes.TrimSpace(text)[1:], " \t\r\n")
	comma := ","
	if len(rest) > 0 && rest[0] == '}' {
		comma = ""
	}
	return append(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q%s`, h.apiVersion, h.kind, comma), rest...)
}

// headOf reads no further than it must. What is no text is left to who decodes the object.
func headOf(text []byte) (h head, err error) {
	s := scanner{in: text}
	err = s.members(func(key []byte) error {
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		value := s.in[start:s.pos]
		switch string(key) {
		case "apiVersion":
			_ = json.Unmarshal(value, &h.apiVersion)
		case "kind":
			_ = json.Unmarshal(value, &h.kind)
		}
		if h.apiVersion != "" && h.kind != "" {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return h, err
}

var errEnough = errors.New("no more is needed")
