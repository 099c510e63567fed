package schema

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
)

// TestGoldenDefinitions: the file of definitions is what CUE makes of its files, and nothing is lost in it.
func TestGoldenDefinitions(t *testing.T) {
	data, err := structural.Pack(compiledJob(), compiledEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	golden.Open(t, "definition").Compare(t, "definitions.json", data)
	unpacked, err := structural.Unpack(data, definition.Formats)
	if err != nil || len(unpacked) != 2 {
		t.Fatalf("%d schemas, %v", len(unpacked), err)
	}
	again, err := structural.Pack(unpacked...)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("packed again they are %d bytes, not %d: %v", len(again), len(data), err)
	}
}

// stale is an error where the file of definitions is not what the CUE files define. Without it, the tests that compare
// CUE with Go would report a new field as missing in CUE.
func stale(file []byte) error {
	data, err := structural.Pack(compiledJob(), compiledEnvironment())
	if err == nil && !bytes.Equal(data, file) {
		err = errors.New("schema/definition/definitions.json is older than the CUE files: run 'make golden'")
	}
	return err
}

// TestStaleDefinitions: a file that was not written anew after a change of the CUE files is an error with the command
// that writes it.
func TestStaleDefinitions(t *testing.T) {
	changed := bytes.Replace(definition.Data, []byte(`"name":"replicas"`), []byte(`"name":"copies"`), 1)
	if err := stale(changed); err == nil || !strings.Contains(err.Error(), "make golden") {
		t.Errorf("a renamed field: %v", err)
	}
}

// TestDefinitions: definitions that CUE compiled judge every fixture as those do that were packed, in the same words.
func TestDefinitions(t *testing.T) {
	job, environment := definition.Job, definition.Environment
	t.Cleanup(func() { definition.Job, definition.Environment = job, environment })
	definition.Job, definition.Environment = compiledJob, compiledEnvironment
	for _, kind := range []string{"valid", "invalid"} {
		files, err := filepath.Glob("../fixtures/" + kind + "/*.yaml")
		if err != nil || len(files) < 100 {
			t.Fatalf("%d fixtures: %v", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(file, "../")
			_, err = Load([]Source{{Name: name, Data: text}})
			if kind == "valid" {
				if err != nil {
					t.Errorf("%v", err)
				}
				continue
			}
			base := strings.TrimSuffix(filepath.Base(file), ".yaml")
			said, readErr := os.ReadFile("../golden/invalid/" + base + ".txt")
			if readErr != nil {
				t.Fatal(readErr)
			}
			if err == nil { // the objects have the mistake
				continue
			}
			if diff := cmp.Diff(string(said), err.Error()+"\n"); diff != "" {
				t.Errorf("%s (-packed +compiled):\n%s", name, diff)
			}
		}
	}
}

// TestUnpackNothing: what is not packed definitions is refused.
func TestUnpackNothing(t *testing.T) {
	for _, text := range []string{"", "[]", `{"schemas":[1],"roots":[0]}`} {
		if _, err := structural.Unpack([]byte(text), nil); err == nil {
			t.Errorf("%q is unpacked", text)
		}
	}
}
