package crds_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/crds"
)

// server is an API server's own code, which the command does not link.
type server struct {
	schema    *schema.Structural
	validator validation.SchemaValidator
}

func newServer(t *testing.T, file string) server {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		in.Spec.Versions[1].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	return server{structural, validator}
}

// decode gives the object as a server reads it, the fields that it would refuse, and what it says without a field of
// its own: that one of several alternatives should hold.
func (s server) decode(obj map[string]any) (stored map[string]any, fields []string, rest string) {
	obj = runtime.DeepCopyJSON(obj)
	defaulting.Default(obj, s.schema)
	pruning.Prune(obj, s.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.schema)
	if err := objectmeta.Coerce(nil, obj, s.schema, false, false); err != nil {
		return nil, []string{err.Field}, ""
	}
	errs := validation.ValidateCustomResource(nil, obj, s.validator)
	errs = append(errs, objectmeta.Validate(nil, obj, s.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, obj)...)
	for _, err := range errs {
		if err.Field == "<nil>" {
			rest += err.Detail + "\n"
		} else {
			fields = append(fields, err.Field)
		}
	}
	slices.Sort(fields)
	return obj, slices.Compact(fields), rest
}

// TestAsServer holds this package, which does without the parts of an API server that link CEL, against those parts:
// every value of a good object is replaced by every sort of value, and both must refuse the same fields and store the
// same object.
func TestAsServer(t *testing.T) {
	const file = "testdata/runs.yaml"
	evaluator, oracle := definitions(t, file)[0], newServer(t, file)
	good := resource(t, run)
	tried, refused := 0, 0
	for _, path := range paths(good.Object["spec"], nil) {
		for _, value := range []any{
			"delete", nil, "text", "", int64(0), int64(7), 1.5, true,
			[]any{},
			[]any{int64(1), "a"},
			map[string]any{},
			map[string]any{"a": "b"},
		} {
			u := good.DeepCopy()
			u.Object["spec"] = set(u.Object["spec"], path, value)
			tried++
			stored, findings := evaluator.Admit(u)
			wantStored, want, rest := oracle.decode(u.Object)
			at := fmt.Sprintf("%v = %v", path, value)
			var got []string
			for _, f := range findings {
				// What has its field in the text alone is compared with the text.
				inRest := !slices.Contains(want, f.Field) && strings.Contains(rest, `"`+f.Field+`"`)
				if f.Verdict == crds.Refused && !inRest {
					got = append(got, f.Field)
				}
			}
			if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
				t.Errorf("%s: refused (-server +got):\n%s%v%s", at, diff, findings, rest)
			}
			if stored == nil {
				refused++
			} else if diff := cmp.Diff(wantStored, stored); diff != "" || rest != "" {
				t.Errorf("%s: stored (-server +got):\n%s%s", at, diff, rest)
			}
		}
	}
	if tried < 400 || refused < tried/4 {
		t.Errorf("%d objects, %d of them refused: the mutations no longer reach the schema", tried, refused)
	}
}

// paths lists the ways to every value, keys and indices.
func paths(x any, at []any) [][]any {
	all := [][]any{slices.Clone(at)}
	switch x := x.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			all = append(all, paths(x[key], append(at, key))...)
		}
	case []any:
		for i := range x {
			all = append(all, paths(x[i], append(at, i))...)
		}
	}
	return all
}

// set replaces the value at a path, or deletes it.
func set(x any, path []any, value any) any {
	if len(path) == 0 {
		if value == "delete" {
			return map[string]any{}
		}
		return value
	}
	switch x := x.(type) {
	case map[string]any:
		key := path[0].(string)
		if len(path) == 1 && value == "delete" {
			delete(x, key)
		} else {
			x[key] = set(x[key], path[1:], value)
		}
	case []any:
		x[path[0].(int)] = set(x[path[0].(int)], path[1:], value)
	}
	return x
}

// TestOneLine: a finding is a line of its own, whatever the object holds.
func TestOneLine(t *testing.T) {
	runs := definitions(t, "testdata/runs.yaml")
	u := resource(t, mutate(t, run, "title: bert", `title: "a\nb"`))
	u.SetName("a\nb")
	findings, _ := crds.Check(runs, []runtime.Object{u})
	if len(findings) == 0 {
		t.Error("nothing is refused")
	}
	for _, f := range findings {
		if strings.Contains(f.String(), "\n") {
			t.Errorf("several lines: %q", f)
		}
	}
}
