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
	if diff := cmp.Diff(map[string]any{"replicas": int64(4), "on": true, "version": 1.1}, spec); diff != "" {
		t.Errorf("not as it was written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Duplicate{{[]string{"spec", "replicas"}, 9}}, objects[0].Duplicates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := objects[0].Line([]string{"spec", "nosuch"}); got != 5 {
		t.Errorf("line %d of a field that is not there, want its parent's 5", got)
	}
	if got := objects[0].Text([]string{"spec", "version"}); got != "1.10" {
		t.Errorf("version is written as %q, want 1.10", got)
	}
	if got := objects[1].Line([]string{"metadata", "name"}); got != 18 {
		t.Errorf("line %d of an item's name, want 18", got)
	}
}
