package structural

import (
	"encoding/json"
	"fmt"
	"strings"

	"cuelang.org/go/encoding/jsonschema"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// JSONSchema is what a JSON Schema of draft 2020-12 can say of s: fields with their meaning and default, alternatives,
// values, ranges and patterns. Formats that Go parses are beyond it. CUE's own generator writes the scalars alone: of a
// conjunction of closed mappings it requires that each has all the fields, so that no document is valid.
func (s *Schema) JSONSchema() (map[string]any, error) {
	switch {
	case s.scalar != nil:
		return s.scalar.jsonSchema()
	case s.open:
		return map[string]any{"type": "object"}, nil
	case s.Elem != nil:
		elem, err := s.Elem.JSONSchema()
		if s.Kind == yamldoc.List {
			return map[string]any{"type": "array", "items": elem}, err
		}
		return map[string]any{"type": "object", "additionalProperties": elem}, err
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range s.Fields {
		property, err := f.jsonSchema()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		properties[f.Name] = property
		if f.required {
			required = append(required, f.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if s.OneOf != nil {
		out["oneOf"] = s.alternativeSchemas()
	}
	return out, nil
}

// alternativeSchemas has an entry for each field that excludes the others, and one for none of them if that is allowed.
func (s *Schema) alternativeSchemas() (out []any) {
	for _, name := range s.OneOf {
		out = append(out, map[string]any{"required": []string{strings.TrimSpace(name)}})
	}
	if s.exact {
		return out
	}
	return append(out, map[string]any{"not": map[string]any{"anyOf": out[:len(out):len(out)]}})
}

func (f *Field) jsonSchema() (map[string]any, error) {
	out, err := f.Schema.JSONSchema()
	if err != nil {
		return nil, err
	}
	if f.doc != "" {
		out["description"] = f.doc
	}
	if f.Value != nil {
		out["default"] = json.RawMessage(f.Value.AppendJSON(nil))
	}
	return out, nil
}

func (s *scalar) jsonSchema() (map[string]any, error) {
	s.evaluator.mu.Lock()
	defer s.evaluator.mu.Unlock()
	expr, err := jsonschema.Generate(s.value.Eval(), nil)
	if err != nil {
		return nil, err
	}
	text, err := s.evaluator.ctx.BuildExpr(expr).MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	delete(out, "$schema")
	return out, nil
}
