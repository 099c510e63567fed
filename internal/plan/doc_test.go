package plan

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fields lists the paths of a type's JSON in the order of its fields.
func fields(t reflect.Type, prefix string) (out []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if t.Field(i).Anonymous {
			out = append(out, fields(t.Field(i).Type, prefix)...)
		}
		if name == "" {
			continue
		}
		out = append(out, prefix+name)
		of, at := t.Field(i).Type, prefix+name
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				at += "[]"
			}
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			out = append(out, fields(of, at+".")...)
		}
	}
	return out
}

var row = regexp.MustCompile("(?m)^\\| `([^`]*)` \\|")

// TestDocumented holds docs/plan.md against the types that are printed.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range row.FindAllSubmatch(text, -1) {
		got = append(got, string(m[1]))
	}
	if diff := cmp.Diff(fields(reflect.TypeFor[Plan](), ""), got); diff != "" {
		t.Errorf("fields (-types +docs/plan.md):\n%s", diff)
	}
}
