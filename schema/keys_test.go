package schema

import (
	"strings"
	"testing"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// TestKeys: keys that the definitions restrict by a pattern are those that an API server takes.
func TestKeys(t *testing.T) {
	parts := []string{
		"a", "A", "1", "-", ".", "_", "/", "a-b", "a.b", "a..b", "a--b", ".a", "a.", "x_y", "example.com",
		"Example.com", "", " ", "é", strings.Repeat("a", 13), strings.Repeat("a", 63), strings.Repeat("a.", 95) + "a",
	}
	refused := 0
	for _, a := range parts {
		for _, b := range parts {
			for _, key := range []string{a + b, a + "/" + b} {
				same(t, "metadata: {name: x, labels: {", key, "}}", len(utilvalidation.IsQualifiedName(key)) == 0)
				same(t, "spec: {sidecars: [{ports: {", key, "}}]}", len(utilvalidation.IsValidPortName(key)) == 0)
				if len(utilvalidation.IsQualifiedName(key)) > 0 {
					refused++
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d keys are refused: there is more that is no key", refused)
	}
}

// same compares what the definitions say of a key with what an API server says.
func same(t *testing.T, before, key, after string, want bool) {
	t.Helper()
	_, errs := load(t, "kind: TrainingJob\n"+before+`"`+key+`": 1`+after+"\n")
	got := true
	for _, e := range errs {
		got = got && !strings.Contains(e.Msg, "is not a key")
	}
	if got != want {
		t.Errorf("%s%q: accepted %v, want %v", before, key, got, want)
	}
}
