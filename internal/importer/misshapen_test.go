package importer_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// strides is how many values of a file are passed over for one that is replaced; 1 takes an hour.
const strides = 397

// TestMisshapen puts a value of another kind in the place of one of a manifest after another: import must end with
// notes, not with a panic.
func TestMisshapen(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	others, _ := filepath.Glob(filepath.Join(corpus, "*.yaml")) // more, where they are
	at := 0
	for _, file := range append(files, others...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range documents(t, string(text)) {
			within(object, func(put func(any)) {
				at++
				if at%strides == 0 {
					for _, other := range []any{
						1, "",
						[]any{},
						map[string]any{},
						nil,
						[]any{1},
						map[string]any{"a": 1},
					} {
						put(other)
						misshapen(t, filepath.Base(file), object)
					}
				}
			})
		}
	}
}

// within calls f for every value below one, with what puts another in its place; its own is put back afterwards.
func within(value any, f func(put func(any))) {
	switch x := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) { // the same ones each time
			old := x[key]
			f(func(other any) { x[key] = other })
			x[key] = old
			within(old, f)
		}
	case []any:
		for i, old := range x {
			f(func(other any) { x[i] = other })
			x[i] = old
			within(old, f)
		}
	}
}

func misshapen(t *testing.T, file string, object map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %v\n%s", file, r, text)
		}
	}()
	importer.Jobs([]schema.Source{{Name: "in.yaml", Data: text}})
}
