package schema

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	cueyaml "cuelang.org/go/encoding/yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
)

// cuePackage is the whole schema under CUE's own evaluator, defaults.cue included. It ends a test that would compare it
// with stale definitions.
func cuePackage(t *testing.T) (*cue.Context, cue.Value) {
	t.Helper()
	if err := stale(definition.Data); err != nil {
		t.Fatal(err)
	}
	ctx := cuecontext.New()
	root, err := structural.Evaluate(ctx, cueFiles, "job.cue", "refusals.cue", "environment.cue", "defaults.cue")
	if err != nil {
		t.Fatal(err)
	}
	return ctx, root
}

func fixtures(t *testing.T, kind string) []string {
	t.Helper()
	files, err := filepath.Glob("../fixtures/" + kind + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	return files
}

// TestDrift walks job.cue and job.go together: each field stands in both.
func TestDrift(t *testing.T) {
	if err := stale(definition.Data); err != nil {
		t.Fatal(err)
	}
	drift(t, definition.Job(), reflect.TypeFor[job.Job](), "")
	env := definition.Environment().Field("spec").Schema
	for _, f := range env.Fields {
		if f.Name == "defaults" || f.Name == "overrides" { // merged as trees, never decoded
			continue
		}
		goField, ok := jsonFields(reflect.TypeFor[environment.Spec]())[f.Name]
		if !ok {
			t.Errorf("environment.cue has spec.%s, environment.go does not", f.Name)
			continue
		}
		drift(t, f.Schema, goField, "spec."+f.Name)
	}
}

func drift(t *testing.T, s *structural.Schema, typ reflect.Type, at string) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice && s.Kind == yamldoc.List {
		typ = typ.Elem()
	}
	if s.Kind == yamldoc.List {
		s = s.Elem
	}
	if s.IsScalar() || s.Elem != nil || typ == reflect.TypeFor[json.RawMessage]() {
		return
	}
	goFields := jsonFields(typ)
	for _, f := range s.Fields {
		child, ok := goFields[f.Name]
		if !ok {
			t.Errorf("CUE has %s.%s, Go does not", at, f.Name)
			continue
		}
		drift(t, f.Schema, child, strings.TrimPrefix(at+"."+f.Name, "."))
		delete(goFields, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(goFields)) {
		t.Errorf("Go has %s.%s, CUE does not", at, name)
	}
}

func jsonFields(typ reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			maps.Copy(out, jsonFields(f.Type))
		} else if name != "" && name != "-" {
			out[name] = f.Type
		}
	}
	return out
}

// TestDefaults holds our reading of defaults.cue against CUE's: the completed tree of every valid fixture is what CUE
// makes of the file under #Effective.
func TestDefaults(t *testing.T) {
	ctx, root := cuePackage(t)
	effective := root.LookupPath(cue.ParsePath("#Effective"))
	for _, file := range fixtures(t, "valid") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, errs := structural.Split(Source{Name: file, Data: text})
		if errs != nil {
			t.Fatal(errs)
		}
		for _, doc := range docs {
			d := structural.Parse(doc)
			if d.Root == nil {
				continue
			}
			extracted, err := cueyaml.Extract(file, doc.Text)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ctx.BuildFile(extracted).Unify(effective).MarshalJSON()
			if err != nil {
				t.Errorf("%s: CUE refuses it: %v", file, err)
				continue
			}
			d.Root = structural.Completed(d.Root, definition.Job())
			if diff := cmp.Diff(decoded(t, want), decoded(t, d.Root.AppendJSON(nil))); diff != "" {
				t.Errorf("%s (-CUE +ours):\n%s", file, diff)
			}
		}
	}
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCUEAgrees holds the walk against CUE's own verdict on whole documents: what the walk finds in a fixture, and no
// rule of Go's is about, CUE refuses under #TrainingJob, and what the walk accepts, CUE accepts.
func TestCUEAgrees(t *testing.T) {
	ctx, root := cuePackage(t)
	job := root.LookupPath(cue.ParsePath("#TrainingJob"))
	// What CUE has no word for, or only sketches, may be refused by the walk alone.
	ours := map[string]bool{"bytes": true, "cpu": true, "duration": true, "no-value": true}
	checked := 0
	for _, file := range append(fixtures(t, "valid"), fixtures(t, "invalid")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, errs := structural.Split(Source{Name: file, Data: text})
		if errs != nil {
			continue
		}
		for _, doc := range docs {
			d := structural.Parse(doc)
			if d.Root == nil || d.Errs != nil || d.Root.Kind != yamldoc.Map || d.Root.Field("kind") == nil ||
				d.Root.Field("kind").Text != "TrainingJob" {
				continue
			}
			c := newChecker(names.KindTrainingJob)
			c.Check(d.Root, definition.Job(), nil, d.Root.At)
			extracted, err := cueyaml.Extract(file, doc.Text)
			if err != nil {
				continue
			}
			verdict := ctx.BuildFile(extracted).Unify(job).Validate(cue.Concrete(true))
			if verdict != nil && len(c.Errs) == 0 {
				t.Errorf("%s:%d: CUE refuses what we accept: %v", file, doc.Line, verdict)
			}
			for _, e := range c.Errs {
				if verdict == nil && !ours[e.Rule] {
					t.Errorf("%s:%d: CUE accepts what we refuse: %v", file, doc.Line, e)
				}
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d documents compared: the fixtures hold more", checked)
	}
}

// TestWords: whatever a scalar restricts can be said in words, not in CUE's notation.
func TestWords(t *testing.T) {
	var walk func(s *structural.Schema, at string)
	walk = func(s *structural.Schema, at string) {
		if s.IsScalar() {
			if words := s.Words(); words == "" || strings.ContainsAny(words, "^$|&=\\") &&
				!strings.Contains(words, "'=") && !strings.Contains(words, "_@+=") {
				t.Errorf("%s: must be %q: give its definition an @must", at, words)
			}
			return
		}
		if s.Elem != nil {
			walk(s.Elem, at+"[]")
		}
		for _, f := range s.Fields {
			walk(f.Schema, at+"."+f.Name)
		}
	}
	walk(definition.Job(), "")
	walk(definition.Environment(), "")
}

// TestCUEIsClosed: CUE refuses an unknown field in every mapping. A definition that no value satisfies by itself, such
// as one with matchN(1, […]), allows any field if matchN stands beside its fields.
func TestCUEIsClosed(t *testing.T) {
	ctx, root := cuePackage(t)
	checked := 0
	var walk func(definition cue.Value, s *structural.Schema, at string, within func(string) string)
	walk = func(definition cue.Value, s *structural.Schema, at string, within func(string) string) {
		switch {
		case s.IsScalar() || s.Kind == yamldoc.Map && s.Elem == nil && s.Fields == nil:
			return
		case s.Kind == yamldoc.List:
			walk(definition, s.Elem, at+"[]", func(text string) string { return within("[" + text + "]") })
			return
		case s.Elem != nil:
			walk(definition, s.Elem, at+".k", func(text string) string { return within("{k: " + text + "}") })
			return
		}
		checked++
		err := ctx.CompileString(within("{unknownField: 1}")).Unify(definition).Validate()
		if err == nil || !strings.Contains(errors.Details(err, nil), "unknownField: field not allowed") {
			t.Errorf("%s: CUE accepts an unknown field: %v", at, err)
		}
		for _, f := range s.Fields {
			walk(definition, f.Schema, at+"."+f.Name, func(text string) string {
				return within("{" + f.Name + ": " + text + "}")
			})
		}
	}
	same := func(text string) string { return text }
	walk(root.LookupPath(cue.ParsePath("#TrainingJob")), definition.Job(), "job", same)
	walk(root.LookupPath(cue.ParsePath("#Environment")), definition.Environment(), "environment", same)
	if checked < 100 {
		t.Errorf("%d mappings: the schemas have more", checked)
	}
}

// TestAlternativesExist: the fields that matchN names are fields.
func TestAlternativesExist(t *testing.T) {
	found := 0
	var walk func(s *structural.Schema, at string)
	walk = func(s *structural.Schema, at string) {
		for _, name := range s.OneOf {
			found++
			if s.Field(name) == nil {
				t.Errorf("%s: the alternative %s is no field", at, name)
			}
		}
		if s.Elem != nil {
			walk(s.Elem, at+"[]")
		}
		for _, f := range s.Fields {
			walk(f.Schema, at+"."+f.Name)
		}
	}
	walk(definition.Job(), "job")
	walk(definition.Environment(), "environment")
	if found < 20 {
		t.Errorf("%d alternatives: matchN is not read", found)
	}
}
