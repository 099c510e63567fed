package apis_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/cases"
)

// TestQueuedKinds: whatever kind is rendered into a queue of Kueue's, what Kueue writes into it is known.
func TestQueuedKinds(t *testing.T) {
	known := map[schema.GroupKind]bool{}
	for _, w := range apis.WrittenByOthers() {
		known[w.GroupKind] = true
	}
	all, err := cases.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	queued := 0
	for _, c := range all {
		text, err := c.Render("../..")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := manifest.Read(c.String(), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			m, err := meta.Accessor(o)
			if err != nil {
				t.Fatal(err)
			}
			gvk, err := manifest.GVK(o)
			if err != nil {
				t.Fatal(err)
			}
			if m.GetLabels()["kueue.x-k8s.io/queue-name"] == "" {
				continue
			}
			queued++
			if !known[gvk.GroupKind()] {
				t.Errorf("%s: %s is in a queue: add what Kueue writes into it to WrittenByOthers", c, gvk.GroupKind())
			}
		}
	}
	if queued == 0 {
		t.Error("no case is in a queue")
	}
}
