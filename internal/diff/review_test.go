package diff

import (
	"encoding/json"
	"strings"
	"testing"
)

// compare is the report of two objects, each as YAML.
func compare(t *testing.T, was, is string) *Report {
	t.Helper()
	r, err := Compare([]map[string]any{parsed(t, was)}, []map[string]any{parsed(t, is)}, Options{Minor: 36})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written is a report in all three formats.
func written(t testing.TB, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOneReport: where two annotations have an object made anew, the report names always the same one.
func TestOneReport(t *testing.T) {
	annotated := strings.Replace(desiredJob, "labels: {", "annotations: {argocd.argoproj.io/sync-options: "+
		`"Force=true,Replace=true", kustomize.toolkit.fluxcd.io/force: enabled}, labels: {`, 1)
	all := map[string]bool{}
	for range 50 {
		all[written(t, compare(t, annotated, strings.Replace(annotated, "a:1", "a:2", 1)))] = true
	}
	if len(all) != 1 {
		t.Errorf("%d different reports", len(all))
	}
}

// TestBlind: a dump that does not say who applied its fields hides what the other side drops, and a report says so.
func TestBlind(t *testing.T) {
	managed := strings.Replace(liveJob, `uid: "1",`, `uid: "1", managedFields: [{manager: k, operation: Update}],`, 1)
	last := strings.Replace(liveJob, `uid: "1",`,
		`uid: "1", annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"},`, 1)
	for name, c := range map[string]struct{ was, is, want string }{
		"live":         {liveJob, desiredJob, "what NEW drops cannot be seen"},
		"the other":    {desiredJob, liveJob, "what NEW adds to OLD cannot be seen"},
		"managed":      {managed, desiredJob, ""},
		"last applied": {last, desiredJob, ""},
		"rendered":     {desiredJob, desiredJob, ""},
		"goes":         {liveJob, strings.Replace(desiredJob, "name: a,", "name: b,", 1), ""},
	} {
		r := compare(t, c.was, c.is)
		if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", name, got, c.want)
		}
		formats := 3
		if c.want == "" {
			formats = 0
		}
		if n := strings.Count(written(t, r), "dump has no managedFields"); n != formats {
			t.Errorf("%s: %d formats of %d have the warning", name, n, formats)
		}
	}
}

// TestSummary: a summary counts objects, each once for a class.
func TestSummary(t *testing.T) {
	second := strings.NewReplacer("name: a,", "name: a-2,", "a:1", "a:2").Replace(desiredJob)
	r := compare(t, desiredJob, second)
	if len(r.Jobs[0].Changes) < 2 || r.Counts[Overlap] != 1 {
		t.Fatalf("%+v", r)
	}
	if got := r.Summary(); got != "1 object on Kubernetes 1.36: two runs overlap" {
		t.Error(got)
	}
	r = compare(t, desiredJob, strings.NewReplacer("a:1", "a:2", "spec:\n  ", "spec:\n  parallelism: 2\n  ").
		Replace(desiredJob))
	if got := r.Summary(); got != "1 object on Kubernetes 1.36: 1 refused by the API server, 1 changed in place" {
		t.Error(got)
	}
}
