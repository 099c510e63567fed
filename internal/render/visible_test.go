package render

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/schema"
)

// TestVisible: the violations of a value are the same if a policy encodes only what its rules can see.
func TestVisible(t *testing.T) {
	p, err := schema.FenceOf("e.yaml", []byte("apiVersion: tegen.dev/v1alpha1\nkind: Environment\n"+
		"metadata: {name: e}\nspec: {fence: true, namespace: ml, caps: {cpu: 2, shm: 1Gi}, "+
		"overrides: {placement: {nodeSelector: {a: b}}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	same := func(file string, v any, judge func(any) ([]policy.Violation, error)) {
		t.Helper()
		whole, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want, errWhole := judge(json.RawMessage(whole))
		got, err := judge(v)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || errWhole != nil {
			t.Errorf("%s: %T (-all +visible): %v, %v\n%s", file, v, errWhole, err, diff)
		}
		found += len(got)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := schema.Load([]schema.Source{{Name: file, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		bundles, err := Jobs(jobs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bundles {
			same(file, b.Job, p.Job)
			for _, concern := range b.Objects() {
				for _, o := range concern.Objects {
					w := apis.WorkloadOf(o)
					if w == nil {
						continue
					}
					for _, set := range w.PodSets() {
						same(file, set.Template, p.Pod)
					}
				}
			}
		}
	}
	if found < 500 {
		t.Errorf("%d violations, fewer than 500", found)
	}
}
