package schema

import (
	"encoding/json"
	"fmt"

	"github.com/tegen-dev/tegen/internal/names"
)

// JSONSchema describes the documents of a kind for editors and validators: JSON Schema of draft 2020-12, which ends in
// a newline. What must hold between two fields, and formats that Go parses, it cannot say: tegen vet refuses some of
// what it accepts, and accepts nothing that it refuses.
func JSONSchema(kind string) ([]byte, error) {
	s, title := jobSchema(), "The "+kind+" of "+names.APIVersion
	if kind == names.KindEnvironment {
		s = environmentSchema()
	}
	out, err := s.JSONSchema()
	if err != nil {
		return nil, fmt.Errorf("making a JSON Schema of %s: %w", kind, err)
	}
	out["$schema"], out["title"] = "https://json-schema.org/draft/2020-12/schema", title
	text, err := json.MarshalIndent(out, "", " ")
	return append(text, '\n'), err
}
