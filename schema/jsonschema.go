//go:build !js

package schema

import (
	"encoding/json"
	"fmt"

	"github.com/tegen-dev/tegen/internal/names"
)

// JSONSchema describes the documents of a kind for editors and validators: JSON Schema of draft 7, which all of them
// read, ending in a newline. What must hold between two fields, and formats that Go parses, it cannot say: tegen vet
// refuses some of what it accepts, and accepts nothing that it refuses.
func JSONSchema(kind string) ([]byte, error) {
	s, article := compiledJob(), "A "
	if kind == names.KindEnvironment {
		s, article = compiledEnvironment(), "An "
	}
	out, err := s.JSONSchema()
	if err != nil {
		return nil, fmt.Errorf("making a JSON Schema of %s: %w", kind, err)
	}
	out["$schema"] = "http://json-schema.org/draft-07/schema#"
	out["description"] = article + kind + " of " + names.APIVersion + "." // a title would stand over each field
	text, err := json.MarshalIndent(out, "", " ")
	return append(text, '\n'), err
}
