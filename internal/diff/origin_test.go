package diff

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
)

// TestRendered: a report says of each job whether tegen or its input changed; the record itself is no change.
func TestRendered(t *testing.T) {
	pod := func(version, input, image string) []map[string]any {
		return []map[string]any{{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": "a-0", "namespace": "ml", "labels": map[string]any{names.LabelJob: "a"},
				"annotations": map[string]any{names.Version: version, names.Input: input},
			},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "worker", "image": image}}},
		}}
	}
	for what, c := range map[string]struct {
		is   []map[string]any
		says string // "" where nothing is said
	}{
		"tegen":          {pod("v2", "1", "new"), "now by v2 from the same input: tegen changed, not the job"},
		"tegen and job":  {pod("v2", "2", "new"), "tegen v1 and now by v2, and the input changed too"},
		"the job":        {pod("v1", "2", "new"), ""},
		"the record":     {pod("v2", "2", "old"), ""},
		"none is recent": {pod("v2", "", "new"), ""},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := Compare(pod("v1", "1", "old"), c.is, Options{Minor: 36})
			if err != nil {
				t.Fatal(err)
			}
			var text, markdown strings.Builder
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if err := r.WriteMarkdown(&markdown); err != nil {
				t.Fatal(err)
			}
			for _, out := range []string{text.String(), markdown.String()} {
				if (c.says != "") != strings.Contains(out, "rendered by") || !strings.Contains(out, c.says) {
					t.Errorf("want %q in:\n%s", c.says, out)
				}
				if strings.Contains(out, names.Version) {
					t.Errorf("the record is a change:\n%s", out)
				}
			}
			if what == "the record" && len(r.Jobs) > 0 {
				t.Errorf("changes: %+v", r.Jobs)
			}
		})
	}
}
