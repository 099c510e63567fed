package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// FuzzDecode: a job and an environment are read from their trees as encoding/json would from the trees' JSON, whatever
// else is wrong with a document.
func FuzzDecode(f *testing.F) {
	addFixtures(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, doc := range yamldoc.Split("f.yaml", text) {
			root := structural.Parse(doc).Root
			if root == nil {
				continue
			}
			if kind := root.Field("kind"); kind != nil && kind.Text == names.KindEnvironment {
				sameByJSON(t, whole(root, names.KindEnvironment, environmentSchema()), &Environment{}, &Environment{})
			} else {
				sameByJSON(t, whole(root, names.KindTrainingJob, jobSchema()), &Job{}, &Job{})
			}
		}
	})
}

// whole is a tree as it is decoded.
func whole(root *structural.Node, kind string, s *structural.Schema) *structural.Node {
	c := newChecker(kind)
	c.Check(root, s, nil, root.At)
	root.Without(c.Bad)
	return structural.Completed(root, s)
}

func sameByJSON(t *testing.T, root *structural.Node, got, want any) {
	text := root.AppendJSON(nil)
	err, wantErr := root.Decode(got), json.Unmarshal(text, want)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s\n%v, by JSON %v", text, err, wantErr)
	}
	if !reflect.DeepEqual(got, want) {
		a, b := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)
		t.Fatalf("%s\n(-by JSON +by the tree):\n%s\n%s", text, cmp.Diff(a, b), cmp.Diff(asJSON(want), asJSON(got)))
	}
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	return fmt.Sprint(string(text), err)
}
