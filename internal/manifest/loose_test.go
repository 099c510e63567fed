package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadLoosely(t *testing.T) {
	const text = `# a comment
apiVersion: example.dev/v1
kind: Odd
metadata: {name: odd}
spec:
  replicas: 3
  on: yes
  version: 1.10
  replicas: 4
  plan: {a: [1, 2]}
  plan: {a: [1, 2]}
---
just text
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
- 1
- {kind: Nameless}
---
kind: Nameless
`
	objects, errs := ReadLoosely("x.yaml", []byte(text))
	if len(objects) != 2 || len(errs) != 4 {
		t.Fatalf("%d objects, errors %v", len(objects), errs)
	}
	spec := objects[0].Object["spec"].(map[string]any)
	plan := map[string]any{"a": []any{int64(1), int64(2)}}
	want := map[string]any{"replicas": int64(4), "on": true, "version": 1.1, "plan": plan}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("not as it was written (-want +got):\n%s", diff)
	}
	twice := []Duplicate{{[]string{"spec", "replicas"}, 9, false}, {[]string{"spec", "plan"}, 11, true}}
	if diff := cmp.Diff(twice, objects[0].Duplicates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := objects[0].Line([]string{"spec", "nosuch"}); got != 5 {
		t.Errorf("line %d of a field that is not there, want its parent's 5", got)
	}
	if got := objects[0].Text([]string{"spec", "version"}); got != "1.10" {
		t.Errorf("version is written as %q, want 1.10", got)
	}
	if got := objects[1].Line([]string{"metadata", "name"}); got != 20 {
		t.Errorf("line %d of an item's name, want 20", got)
	}
}
