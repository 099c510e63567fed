package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
)

// validators are compiled from what JSONSchema prints, by a program that is not CUE's.
func validators(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	of := map[string]*jsonschema.Schema{}
	for _, kind := range ownKinds {
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

// verdicts are what an editor and tegen say of a file.
type verdicts struct {
	refused error  // by YAML itself, or by the JSON Schema of the kind
	shape   Errors // what the CUE definitions refuse
	yaml    Errors // what tegen does not read, and other readers of YAML may
}

// judge asks both about each document, under the schema of its kind. One of no kind of ours is taken for a job, which
// an editor was told that it is.
func judge(t *testing.T, validators map[string]*jsonschema.Schema, file string) (v verdicts) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	docs, errs := structural.Split(Source{Name: file, Data: text})
	if errs != nil {
		return verdicts{refused: yaml.Unmarshal(text, new(any))}
	}
	for _, doc := range docs {
		var value any
		if err := yaml.Unmarshal(doc.Text, &value); err != nil {
			v.refused = err
			continue
		}
		parsed := structural.Parse(doc)
		if parsed.Root == nil {
			continue
		}
		kind, s := names.KindTrainingJob, definition.Job()
		if k := parsed.Root.Field("kind"); k != nil && k.Text == names.KindEnvironment {
			kind, s = k.Text, definition.Environment()
		}
		if err := validators[kind].Validate(value); err != nil {
			v.refused = err
		}
		c := newChecker(kind)
		c.Check(parsed.Root, s, nil, parsed.Root.At)
		v.shape, v.yaml = append(v.shape, c.Errs...), append(v.yaml, parsed.Errs...)
	}
	return v
}

// sketched are formats that Go parses once their pattern fits, and values in what the definitions leave open.
var sketched = []string{"bytes", "cpu", "duration", "no-value"}

// TestJSONSchemaGolden has another program judge the fixtures by what JSONSchema prints. It accepts all that tegen
// accepts; it refuses what the CUE definitions refuse, and nothing else. What it accepts of the invalid fixtures is
// listed, each with the rules that only tegen knows.
func TestJSONSchemaGolden(t *testing.T) {
	validators := validators(t)
	for _, file := range fixtures(t, "valid") {
		if v := judge(t, validators, file); v.refused != nil || v.shape != nil {
			t.Errorf("%s: %v %v", file, v.refused, v.shape)
		}
	}
	files := fixtures(t, "invalid")
	var list strings.Builder
	accepted := 0
	for _, file := range files {
		v := judge(t, validators, file)
		shape := slices.DeleteFunc(slices.Clone(v.shape), func(e Error) bool {
			return slices.Contains(sketched, e.Rule)
		})
		switch {
		case v.refused == nil && len(shape) > 0:
			t.Errorf("%s is accepted, but %s", file, shape[0].Error())
		case v.shape == nil && v.yaml == nil && errors.As(v.refused, new(*jsonschema.ValidationError)):
			t.Errorf("the definitions accept %s, but %v", file, v.refused)
		case v.refused == nil:
			accepted++
			fmt.Fprintf(&list, "%s: %s\n", strings.TrimSuffix(filepath.Base(file), ".yaml"), rulesOf(t, file))
		}
	}
	head := fmt.Sprintf("# What 'tegen schema' accepts of fixtures/invalid, %d of %d, and the rules that refuse it.\n",
		accepted, len(files))
	golden.Open(t, "testdata/jsonschema").Compare(t, "accepted.txt", []byte(head+list.String()))
}

// rulesOf are the rules that a fixture breaks, each once.
func rulesOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	_, errs := load(t, string(text))
	for _, e := range errs {
		rules = append(rules, e.Rule)
	}
	slices.Sort(rules)
	return strings.Join(slices.Compact(rules), " ")
}

// TestJSONSchemaSays: an editor shows what tegen explain and tegen vet say.
func TestJSONSchemaSays(t *testing.T) {
	text, err := JSONSchema(names.KindTrainingJob)
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Type, Pattern, Description, ErrorMessage string
		Minimum, Maximum                         int
		Default                                  any
		Enum                                     []any
		Required                                 []string
		Properties                               map[string]*node
		AnyOf                                    []struct{ Required []string }
	}
	var root node
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	spec := root.Properties["spec"]
	if got := strings.Join(spec.Required, " "); got != "image" {
		t.Errorf("required in spec: %s", got)
	}
	replicas := spec.Properties["workers"].Properties["replicas"]
	if replicas.Type != "integer" || replicas.Minimum != 1 || replicas.Maximum != 4096 ||
		replicas.ErrorMessage != "must be an integer from 1 to 4096" {
		t.Errorf("spec.workers.replicas: %+v", replicas)
	}
	launcher := spec.Properties["launcher"]
	if !slices.Contains(launcher.Enum, any("torchrun")) || launcher.Default != "torchrun" ||
		!strings.HasPrefix(launcher.Description, "Who starts the training processes") ||
		!strings.HasSuffix(launcher.Description, " Default: torchrun.") {
		t.Errorf("spec.launcher: %+v", launcher)
	}
	name := root.Properties["metadata"].Properties["name"]
	if name.Type != "string" || name.Pattern == "" || !strings.Contains(name.ErrorMessage, "at most 40") {
		t.Errorf("metadata.name: %+v", name)
	}
	if script := spec.Properties["script"]; len(script.AnyOf) != 3 {
		t.Errorf("spec.script: %+v", script)
	}
}
