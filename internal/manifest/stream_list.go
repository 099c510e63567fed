package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

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
	h := headOf(text)
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
	l.head = headOf(text)
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
func (s *stream) object(l *list, d document, h head, text []byte) error {
	if l != nil && h == (head{}) {
		h = l.ofItems()
		text = h.addTo(text)
	}
	if fields, known := s.fields[h.kind]; known && h.apiVersion == "v1" {
		s.short = condense(s.short[:0], text, fields)
		text = s.short
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
		if _, ok := typedGVK(obj); ok && meta.IsListType(obj) {
			continue // its items are null, or else they would be here
		}
		if err := s.hand(obj); err != nil {
			return err
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
