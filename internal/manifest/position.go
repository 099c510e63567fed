package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// document is one document of a stream.
type document struct {
	yamldoc.Document
	lenient bool // fields that the Go types do not have are left out
	named   bool // errors have the object's name
}

func documents(name string, data []byte, lenient bool) []document {
	var docs []document
	for _, d := range yamldoc.Split(name, data) {
		docs = append(docs, document{Document: d, lenient: lenient})
	}
	return docs
}

// mentionsSecret finds a document with a Secret in it: what a parser quotes of it may be one of its values.
var mentionsSecret = lazy.Regexp(`kind["']?\s*:\s*["']?Secret`)

// json is the document's content as JSON. What a cluster printed as JSON is taken as it is: a YAML parser takes several
// times as long and as much memory.
func (d document) json(convert func() ([]byte, error)) ([]byte, error) {
	if text := bytes.TrimSpace(d.Text); d.lenient && json.Valid(text) {
		return text, nil
	}
	text, err := convert()
	var syntax *yamldoc.Error
	if errors.As(err, &syntax) {
		if mentionsSecret().Match(d.Text) {
			syntax = &yamldoc.Error{
				Stream: syntax.Stream, Line: syntax.Line,
				Msg: "the text is not YAML, and not shown, since it mentions a Secret",
			}
		}
		return nil, finding.List{{
			Rule: "manifest/yaml", Level: finding.Error, File: syntax.Stream, Line: syntax.Line,
			Message: "parsing YAML: " + syntax.Msg,
		}}
	}
	return text, err
}

// decodeError finds the line of the field that the decoder complains of. text
// is the JSON it was given, of the value at p.
func (d document) decodeError(p yamldoc.Path, what string, text []byte, err error) error {
	var field kjson.FieldError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		p = p.Add(yamldoc.ParsePath(field.FieldPath())...)
	case errors.As(err, &wrongType):
		at := yamldoc.PathAt(text, wrongType.Offset)
		p = p.Add(at...)
		// Say it in the words of YAML: "json: cannot unmarshal bool into Go
		// struct field" helps nobody who left the quotes off a "no".
		err = fmt.Errorf("got %s, want %s", yamldoc.GotWord(wrongType.Value), yamldoc.WantWord(wrongType.Type))
		if len(at) > 0 {
			err = fmt.Errorf("%s: %w", at, err)
		}
	}
	return d.errorAt(p, fmt.Errorf("reading %s: %w", what, err))
}

// namesField says whether a decoder's error tells where it is, or can be asked.
func namesField(text []byte, err error) bool {
	var field kjson.FieldError
	var wrongType *json.UnmarshalTypeError
	return errors.As(err, &field) || errors.As(err, &wrongType) && len(yamldoc.PathAt(text, wrongType.Offset)) > 0
}

// culprit finds the value that a type with a decoder of its own, such as a quantity, refused without naming it: the one
// without which the error is another, or none.
func culprit(text []byte, err error, decode func([]byte) error) yamldoc.Path {
	var root any
	if json.Unmarshal(text, &root) != nil {
		return nil
	}
	without := func() bool {
		rest, marshalErr := json.Marshal(root)
		again := decode(rest)
		return marshalErr == nil && (again == nil || again.Error() != err.Error())
	}
	var find func(value any, p yamldoc.Path) yamldoc.Path
	find = func(value any, p yamldoc.Path) yamldoc.Path {
		try := func(child any, step yamldoc.Path, set func(any)) yamldoc.Path {
			set(nil)
			is := without()
			set(child)
			if !is {
				return nil
			}
			if deeper := find(child, step); deeper != nil {
				return deeper
			}
			return step
		}
		switch x := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(x)) {
				if at := try(x[key], p.Add(key), func(v any) { x[key] = v }); at != nil {
					return at
				}
			}
		case []any:
			for i := range x {
				if at := try(x[i], p.Index(i), func(v any) { x[i] = v }); at != nil {
					return at
				}
			}
		}
		return nil
	}
	return find(root, nil)
}

func (d document) errorAt(p yamldoc.Path, err error) error {
	return finding.List{{
		Rule: "manifest/decode", Level: finding.Error, File: d.Stream, Line: d.lineOf(p), Message: err.Error(),
	}}
}

// lineOf gives the line of the value at p, or of as much of the path as the document has. The document is parsed anew,
// with a parser that keeps positions, as only errors ask for them.
func (d document) lineOf(p yamldoc.Path) int {
	root, err := d.Parse()
	if err != nil || root == nil {
		return d.FirstLine()
	}
	_, line := yamldoc.At(root, p)
	return line
}
