package schema

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
)

func TestExplain(t *testing.T) {
	at, below, err := Explain(names.KindTrainingJob, "spec.storage")
	if err != nil {
		t.Fatal(err)
	}
	if at.Doc == "" || !strings.HasPrefix(at.Type, "a list of mappings with at most one of claim") {
		t.Errorf("spec.storage: %+v", at)
	}
	found := map[string]Field{}
	for _, f := range below {
		found[f.Path] = f
	}
	if f := found["spec.storage.mountPath"]; !f.Required || !strings.Contains(f.Type, "absolute path") {
		t.Errorf("a required field of an item: %+v", f)
	}
	if f := found["spec.storage.name"]; f.Default != "data" {
		t.Errorf("a literal default: %+v", f)
	}
	if f, _, err := Explain(names.KindTrainingJob, "spec.workers.min"); err != nil ||
		f.Default != "as spec.workers.replicas" {
		t.Errorf("a default that follows another field: %+v, %v", f, err)
	}
	if _, _, err := Explain(names.KindTrainingJob, "spec.rendezvos.port"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "rendezvous"?`) {
		t.Errorf("a misspelt path: %v", err)
	}
	if _, _, err := Explain(names.KindEnvironment, "spec.overrides.workers"); err != nil {
		t.Errorf("a path of an environment: %v", err)
	}
}

// TestDocumented: every field has sentences of documentation, and an optional one says what happens without it where
// defaults.cue does not.
func TestDocumented(t *testing.T) {
	for _, kind := range []string{names.KindTrainingJob, names.KindEnvironment} {
		for _, path := range Paths(kind) {
			f, below, err := Explain(kind, path)
			if err != nil {
				t.Fatal(err)
			}
			if !sentences.MatchString(f.Doc) {
				t.Errorf("%s %s: want sentences in the CUE file, got %q", kind, path, f.Doc)
			}
			ofJob := strings.HasPrefix(path, "spec.defaults.") || strings.HasPrefix(path, "spec.overrides.")
			optional := !ofJob && !f.Required && f.Default == "" && len(below) == 0 && f.Type != "a mapping"
			if optional && !strings.Contains(f.Doc, "Default") {
				t.Errorf("%s %s: want a default in defaults.cue or in its sentences, got %q", kind, path, f.Doc)
			}
		}
	}
}

var sentences = regexp.MustCompile(`^[A-Za-z].*\.$`)
