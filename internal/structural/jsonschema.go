package structural

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// JSONSchema is what a JSON Schema of draft 7 can say of s: fields with their meaning and default, alternatives,
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
			return s.limits.addTo(map[string]any{"type": "array", "items": elem}), err
		}
		out := map[string]any{"type": "object", "additionalProperties": elem}
		if s.keys.known().Rule != nil {
			names, err := s.keys.jsonSchema()
			if err != nil {
				return nil, err
			}
			explainMistakes(names, "is not a key: "+s.keys.words())
			s.keys.known().Rule.explainRefusals(names)
			out["propertyNames"] = names
		}
		return out, err
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
		s.addAlternatives(out)
	}
	return out, nil
}

// addTo adds the limits to the JSON Schema of a list.
func (l *limits) addTo(list map[string]any) map[string]any {
	if l == nil {
		return list
	}
	if l.Least > 0 {
		list["minItems"] = l.Least
	}
	if l.Most > 0 {
		list["maxItems"] = l.Most
	}
	if l.Distinct {
		list["uniqueItems"] = true
	}
	return list
}

// addAlternatives refuses each field beside one that is before it in the list, where an editor can mark it. Of a oneOf
// an editor marks the whole mapping, and does not say why.
func (s *Schema) addAlternatives(out map[string]any) {
	list := strings.Join(s.OneOf, ", ")
	var rest, all []any
	for i, name := range s.OneOf {
		all = append(all, map[string]any{
			"required": []string{name}, "errorMessage": "one of " + list + " is needed",
		})
		others := map[string]any{}
		for _, other := range s.OneOf[i+1:] {
			others[other] = false
		}
		if len(others) > 0 {
			rest = append(rest, map[string]any{
				"if":   map[string]any{"required": []string{name}},
				"then": map[string]any{"properties": others, "errorMessage": "only one of " + list + " may be given"},
			})
		}
	}
	out["allOf"] = rest
	if s.exact {
		out["anyOf"] = all
	}
}

// jsonSchema has the default twice: editors show the description, and write the value.
func (f *Field) jsonSchema() (map[string]any, error) {
	out, err := f.Schema.JSONSchema()
	if err != nil {
		return nil, err
	}
	doc := f.doc
	if written := f.explain("").Default; written != "" {
		doc = strings.TrimSpace(doc + " Default: " + written + ".")
	}
	if doc != "" {
		out["description"] = doc
	}
	if f.Value != nil {
		out["default"] = json.RawMessage(f.Value.AppendJSON(nil))
	}
	return out, nil
}

func (s *scalar) jsonSchema() (map[string]any, error) {
	out, err := s.generate()
	if err != nil {
		return nil, err
	}
	out = flatten(out)
	if s.enum() == nil && s.known().Rule != nil {
		explainMistakes(out, "must be "+s.words())
		s.known().Rule.explainRefusals(out)
	}
	return out, nil
}

// explainRefusals puts the messages of parts of a conjunction beside the patterns that they refuse.
func (r *rule) explainRefusals(s map[string]any) {
	for _, part := range r.All {
		part.explainRefusals(s)
	}
	if r.Refusal == nil || r.Without == "" {
		return
	}
	all, _ := s["allOf"].([]any)
	for _, one := range append([]any{s}, all...) {
		found, _ := one.(map[string]any)["if"].(map[string]any)
		if found["pattern"] == r.Without {
			one.(map[string]any)["then"].(map[string]any)["errorMessage"] = r.Refusal.about("this").Text
		}
	}
}

// flatten writes a conjunction of CUE as one schema, as far as it can, which editors complete and explain better.
func flatten(s map[string]any) map[string]any {
	for _, word := range []string{"allOf", "anyOf"} {
		parts, _ := s[word].([]any)
		for i, part := range parts {
			parts[i] = flatten(part.(map[string]any))
		}
	}
	switch not, _ := s["not"].(map[string]any); {
	case not["const"] == "":
		delete(s, "not")
		s["minLength"] = 1
	case len(not) == 1 && not["pattern"] != nil: // matches no empty text: editors have no message for a not
		delete(s, "not")
		s["if"], s["then"] = not, map[string]any{"pattern": "^$"}
	}
	parts, _ := s["allOf"].([]any)
	delete(s, "allOf")
	var rest []any
	for _, part := range parts {
		if part := join(s, part.(map[string]any)); len(part) > 0 {
			rest = append(rest, part)
		}
	}
	if rest != nil {
		s["allOf"] = rest
	}
	return s
}

// join adds the words of a part of a conjunction to s, and returns those by which s says something else already.
func join(s, part map[string]any) map[string]any {
	if part["type"] == "number" && s["type"] == "integer" {
		delete(part, "type") // it says less
	}
	for word, value := range part {
		if old, ok := s[word]; !ok || word == "type" && old == value {
			s[word] = value
			delete(part, word)
		}
	}
	return part
}

// explainMistakes puts a message beside all that can be wrong, by the word that editors read it from.
func explainMistakes(s map[string]any, message string) {
	for _, word := range []string{"allOf", "anyOf"} {
		parts, _ := s[word].([]any)
		for _, part := range parts {
			explainMistakes(part.(map[string]any), message)
		}
	}
	if then, ok := s["then"].(map[string]any); ok {
		then["errorMessage"] = message
	}
	if s["anyOf"] == nil {
		s["errorMessage"] = message
	}
}
