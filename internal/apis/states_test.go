package apis

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/crds/celrules"
	"github.com/tegen-dev/tegen/test/upstream"
)

// TestStates holds the status of every state in testdata/health against the definition of its kind: no controller could
// have written another.
func TestStates(t *testing.T) {
	files, err := upstream.Files("../..")
	absent := errors.Is(err, upstream.ErrAbsent)
	if err != nil && !absent {
		t.Fatal(err)
	}
	all, evaluated := states(t), 0
	for _, file := range files {
		if strings.Contains(file, "mxnet-operator_") { // of an API of the same name that is older than these states
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Of a status that is written apart, the evaluator would say that creating the object loses it.
		definitions, err := crds.Read(file, bytes.ReplaceAll(text, []byte("      status: {}\n"), nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range definitions {
			e := celrules.New(d)
			for _, s := range all[d.Kind] {
				if !e.Serves(s.GroupVersionKind().Version) {
					continue
				}
				evaluated++
				for _, finding := range e.Check(t.Context(), s.Unstructured) {
					if strings.HasPrefix(finding.Field, "status") {
						t.Errorf("%s %s: %v", d.Kind, s.GetName(), finding)
					}
				}
			}
		}
	}
	if absent {
		upstream.Absent(t, err)
	}
	if evaluated == 0 {
		t.Error("nothing was evaluated")
	}
}
