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
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
)

// FuzzDecode: a job and an environment are read from their trees as encoding/json would from the trees' JSON, whatever
// else is wrong with a document.
func FuzzDecode(f *testing.F) {
	addFixtures(f)
	for _, text := range []string{ // a field in another case ahead of itself
		"spec: {Rendezvous: {etcd: {storage: {class: y}}}, rendezvous: {etcd: {quota: 3Gi}}}\n",
		"spec: {ROLES: {server: {image: q}}, roles: {server: {replicas: 2}}}\n",
		"Spec: {image: a}\nspec: {command: [b]}\nMETADATA: {labels: {a: b}}\nmetadata: {name: c}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, doc := range yamldoc.Split("f.yaml", text) {
			root := structural.Parse(doc).Root
			if root == nil {
				continue
			}
			if kind := root.Field("kind"); kind != nil && kind.Text == names.KindEnvironment {
				checked(root, names.KindEnvironment, definition.Environment())
				sameByJSON(t, root, definition.Environment(), func() any { return &environment.Environment{} })
			} else {
				checked(root, names.KindTrainingJob, definition.Job())
				sameByJSON(t, root, definition.Job(), func() any { return &job.Job{} })
			}
		}
	})
}

// checked leaves in a tree what is decoded of it.
func checked(root *structural.Node, kind string, s *structural.Schema) {
	c := newChecker(kind)
	c.Check(root, s, nil, root.At)
	root.Without(c.Bad)
}

// sameByJSON decodes a tree's completed form by its JSON, by its nodes, and without such nodes.
func sameByJSON(t *testing.T, root *structural.Node, s *structural.Schema, empty func() any) {
	whole := structural.Completed(root, s)
	text := whole.AppendJSON(nil)
	want, byTree := empty(), empty()
	wantErr := json.Unmarshal(text, want)
	equal := func(by string, got any, err error) {
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s\n%s %v, by JSON %v", text, by, err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			a, b := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)
			t.Fatalf("%s\n(-by JSON +%s):\n%s\n%s", text, by, cmp.Diff(a, b), cmp.Diff(asJSON(want), asJSON(got)))
		}
	}
	equal("by the tree", byTree, whole.Decode(byTree))
	for range 2 { // what documents share is made by the first
		direct := empty()
		equal("directly", direct, root.DecodeCompleted(s, direct))
	}
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	return fmt.Sprint(string(text), err)
}
