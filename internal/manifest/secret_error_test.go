package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/manifest"
)

// TestSecretNotQuoted: an error of a document that has a Secret says where, and quotes nothing of it.
func TestSecretNotQuoted(t *testing.T) {
	const secret = "apiVersion: v1\nkind: %s\nmetadata: {name: a}\nstringData:\n  p: %s\n"
	for _, value := range []string{"*hunter2", "!!int hunter2", "'hunter2", "{hunter2", "!!float hunter2"} {
		for _, kind := range []string{"Secret", `"Secret"`, "SecretList"} {
			_, errs := manifest.ReadLoosely("s.yaml", fmt.Appendf(nil, secret, kind, value))
			if len(errs) == 0 {
				t.Errorf("%s is taken", value)
			}
			for _, err := range errs {
				if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "s.yaml:") {
					t.Errorf("%s: %v", value, err)
				}
			}
			if _, err := manifest.Read("s.yaml", fmt.Appendf(nil, secret, kind, value)); err == nil ||
				strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
	_, errs := manifest.ReadLoosely("s.yaml", fmt.Appendf(nil, secret, "ConfigMap", "*hunter2"))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "hunter2") {
		t.Errorf("of another kind: %v", errs)
	}
}

// TestListOfNothing: a List without a list names its file and line.
func TestListOfNothing(t *testing.T) {
	for _, list := range []string{"{apiVersion: v1, kind: List, items: null}", "{apiVersion: v1, kind: List}"} {
		_, errs := manifest.ReadLoosely("s.yaml", []byte(list))
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "s.yaml:1") ||
			!strings.Contains(errs[0].Error(), "want a list") {
			t.Errorf("%s: %v", list, errs)
		}
	}
}
