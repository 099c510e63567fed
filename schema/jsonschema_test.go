package schema

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/names"
)

// validators are compiled from what JSONSchema prints, by a program that is not CUE's.
func validators(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	of := map[string]*jsonschema.Schema{}
	for _, kind := range []string{names.KindTrainingJob, names.KindEnvironment} {
		text, err := JSONSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(kind+".json", document); err != nil {
			t.Fatal(err)
		}
		if of[kind], err = compiler.Compile(kind + ".json"); err != nil {
			t.Fatal(err)
		}
	}
	return of
}

// judged is what the validators say of each document of a file; read is false where it is no YAML of a kind of ours.
func judged(t *testing.T, validators map[string]*jsonschema.Schema, file string) (err error, read bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var value any
		if err := yaml.Unmarshal(document, &value); err != nil {
			return nil, false
		}
		object, _ := value.(map[string]any)
		kind, _ := object["kind"].(string)
		if validators[kind] == nil {
			return nil, false
		}
		if err := validators[kind].Validate(value); err != nil {
			return err, true
		}
	}
	return nil, true
}

// shapes are the rules of tegen that JSON Schema has words for. Others, such as required and range, share their names
// with rules between fields.
var shapes = []string{"unknown-field", "type", "enum"}

// TestJSONSchema has another program judge the fixtures: it refuses none that tegen accepts, and all whose shape tegen
// refuses.
func TestJSONSchema(t *testing.T) {
	validators := validators(t)
	for _, file := range fixtures(t, "valid") {
		if err, read := judged(t, validators, file); err != nil || !read {
			t.Errorf("%s: %v", file, err)
		}
	}
	refused, read := 0, 0
	for _, file := range fixtures(t, "invalid") {
		err, ok := judged(t, validators, file)
		if !ok {
			continue
		}
		read++
		if err != nil {
			refused++
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, errs := load(t, string(text))
		for _, e := range errs {
			if slices.Contains(shapes, e.Rule) {
				t.Errorf("%s is accepted, but %s", file, e.Error())
			}
		}
	}
	t.Logf("%d of %d invalid fixtures are refused by their shape, which an editor can mark", refused, read)
}
