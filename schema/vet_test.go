package schema

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	cueyaml "cuelang.org/go/encoding/yaml"

	"github.com/tegen-dev/tegen/internal/names"
)

// leastRefused is how many of the invalid fixtures the CUE definitions refuse without tegen. Raise it when a rule moves
// from Go to CUE, or when a new fixture breaks a definition; never lower it.
const leastRefused = 255

// TestCUEAlone counts the files of fixtures/invalid that 'cue vet' refuses: each document is evaluated with the
// definition of its kind, and one of another kind, or of none, as a TrainingJob. A file that CUE cannot read as YAML,
// or that has one key with two values, is not counted, since no definition refuses it.
func TestCUEAlone(t *testing.T) {
	ctx, root := cuePackage(t)
	refused, unreadable := 0, 0
	files := fixtures(t, "invalid")
	for _, file := range files {
		documents, err := readCUE(ctx, file)
		if err != nil {
			unreadable++
		} else if vet(root, documents) != nil {
			refused++
		}
	}
	t.Logf("of %d invalid fixtures CUE refuses %d and cannot read %d", len(files), refused, unreadable)
	switch {
	case refused < leastRefused:
		t.Errorf("CUE refuses %d invalid fixtures, before it refused %d: some definition accepts more than it did",
			refused, leastRefused)
	case refused >= leastRefused+20: // fixtures of several branches meet here
		t.Errorf("CUE refuses %d invalid fixtures: raise leastRefused, which is %d", refused, leastRefused)
	}
	page, err := os.ReadFile("../docs/cue.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("refuse at least %d of them", leastRefused); !strings.Contains(string(page), want) {
		t.Errorf("docs/cue.md does not have %q", want)
	}
	for _, file := range fixtures(t, "valid") {
		documents, err := readCUE(ctx, file)
		if err == nil {
			err = vet(root, documents)
		}
		if err != nil {
			t.Errorf("%s is valid, but %v", file, err)
		}
	}
}

// readCUE reads the documents of a YAML file as CUE does.
func readCUE(ctx *cue.Context, file string) ([]cue.Value, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := cueyaml.Extract(file, text)
	if err != nil {
		return nil, err
	}
	v := ctx.BuildFile(parsed)
	list, err := v.List()
	if err != nil {
		return []cue.Value{v}, v.Err()
	}
	var documents []cue.Value // of a file with several
	for list.Next() {
		documents = append(documents, list.Value())
	}
	return documents, nil
}

// vet evaluates documents as 'cue vet -c' does.
func vet(root cue.Value, documents []cue.Value) error {
	for _, document := range documents {
		definition := "#" + names.KindTrainingJob
		if kind, err := document.LookupPath(cue.ParsePath("kind")).String(); err == nil &&
			kind == names.KindEnvironment {
			definition = "#" + kind
		}
		err := document.Unify(root.LookupPath(cue.ParsePath(definition))).Validate(cue.Concrete(true))
		if err != nil {
			return err
		}
	}
	return nil
}
