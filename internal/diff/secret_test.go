package diff

import (
	"strings"
	"testing"
)

// TestSecretHidden: no value of a Secret is in a report, under whatever key somebody wrote it.
func TestSecretHidden(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {l: x}}\n"
	for _, more := range []string{
		"Data: {p: hunter2}", "data: hunter2", "data: {p: aHVudGVyMg==}", "stringData: {p: hunter2}",
		"stringdata: [{name: hunter2, value: hunter2}]", "spec: {p: [hunter2]}", "p: hunter2",
	} {
		for _, pair := range [][2]string{{secret, secret + more}, {secret + more, secret}} {
			r := compare(t, pair[0], pair[1])
			if got := written(t, r); strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVyMg") ||
				!strings.Contains(got, "not shown") {
				t.Errorf("%s: %s", more, got)
			}
		}
	}
	if got := written(t, compare(t, secret, strings.Replace(secret, "l: x", "l: y", 1))); !strings.Contains(got,
		"metadata.labels.l") {
		t.Errorf("a label's key is missing: %s", got)
	}
}
