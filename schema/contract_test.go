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
	cueyaml "cuelang.org/go/encoding/yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// cuePackage is the whole schema under CUE's own evaluator, defaults.cue included.
func cuePackage(t *testing.T) (*cue.Context, cue.Value) {
	t.Helper()
	ctx := cuecontext.New()
	root, err := evaluate(ctx, cueFiles, "job.cue", "environment.cue", "defaults.cue")
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
	drift(t, jobShape(), reflect.TypeFor[Job](), "")
	env := environmentShape().field("spec").shape
	for _, f := range env.fields {
		if f.name == "defaults" || f.name == "overrides" { // merged as trees, never decoded
			continue
		}
		goField, ok := jsonFields(reflect.TypeFor[EnvironmentSpec]())[f.name]
		if !ok {
			t.Errorf("environment.cue has spec.%s, environment.go does not", f.name)
			continue
		}
		drift(t, f.shape, goField, "spec."+f.name)
	}
}

func drift(t *testing.T, s *shape, typ reflect.Type, at string) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice && s.kind == yamldoc.List {
		typ = typ.Elem()
	}
	if s.kind == yamldoc.List {
		s = s.elem
	}
	if s.isScalar() || s.elem != nil || typ == reflect.TypeFor[json.RawMessage]() {
		return
	}
	goFields := jsonFields(typ)
	for _, f := range s.fields {
		child, ok := goFields[f.name]
		if !ok {
			t.Errorf("CUE has %s.%s, Go does not", at, f.name)
			continue
		}
		drift(t, f.shape, child, strings.TrimPrefix(at+"."+f.name, "."))
		delete(goFields, f.name)
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
		} else if name != "" {
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
		docs, errs := split(Source{file, text})
		if errs != nil {
			t.Fatal(errs)
		}
		for _, doc := range docs {
			d := parse(doc)
			if d.root == nil {
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
			complete(d.root, jobShape())
			if diff := cmp.Diff(decoded(t, want), decoded(t, d.root.appendJSON(nil))); diff != "" {
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
// rule of Go's is about, CUE refuses under #Job, and what the walk accepts, CUE accepts.
func TestCUEAgrees(t *testing.T) {
	ctx, root := cuePackage(t)
	job := root.LookupPath(cue.ParsePath("#Job"))
	// What CUE has no word for, or only sketches, may be refused by the walk alone.
	ours := map[string]bool{"one-of": true, "bytes": true, "cpu": true, "duration": true, "no-value": true}
	checked := 0
	for _, file := range append(fixtures(t, "valid"), fixtures(t, "invalid")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, errs := split(Source{file, text})
		if errs != nil {
			continue
		}
		for _, doc := range docs {
			d := parse(doc)
			if d.root == nil || d.errs != nil || d.root.kind != yamldoc.Map || d.root.field("kind") == nil || d.root.field("kind").text != "TrainingJob" {
				continue
			}
			c := newChecker()
			c.check(d.root, jobShape(), nil, d.root.at)
			extracted, err := cueyaml.Extract(file, doc.Text)
			if err != nil {
				continue
			}
			verdict := ctx.BuildFile(extracted).Unify(job).Validate(cue.Concrete(true))
			if verdict != nil && len(c.errs) == 0 {
				t.Errorf("%s:%d: CUE refuses what we accept: %v", file, doc.Line, verdict)
			}
			for _, e := range c.errs {
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
	var walk func(s *shape, at string)
	walk = func(s *shape, at string) {
		if s.isScalar() {
			if words := s.typeWords(); words == "" || strings.ContainsAny(words, "^$|&=\\") && !strings.Contains(words, "'=") && !strings.Contains(words, "_@+=") {
				t.Errorf("%s: must be %q: give its definition an @must", at, words)
			}
			return
		}
		if s.elem != nil {
			walk(s.elem, at+"[]")
		}
		for _, f := range s.fields {
			walk(f.shape, at+"."+f.name)
		}
	}
	walk(jobShape(), "")
	walk(environmentShape(), "")
}

// TestAlternativesExist: the fields that @oneof and @exactly name are fields.
func TestAlternativesExist(t *testing.T) {
	found := 0
	var walk func(s *shape, at string)
	walk = func(s *shape, at string) {
		for _, name := range s.oneOf {
			found++
			if s.field(name) == nil {
				t.Errorf("%s: the alternative %s is no field", at, name)
			}
		}
		if s.elem != nil {
			walk(s.elem, at+"[]")
		}
		for _, f := range s.fields {
			walk(f.shape, at+"."+f.name)
		}
	}
	walk(jobShape(), "job")
	walk(environmentShape(), "environment")
	if found < 20 {
		t.Errorf("%d alternatives: the attributes are not read", found)
	}
}
