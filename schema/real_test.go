package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealJobsAreShort: a job as somebody runs it today is under 40 lines; what is longer lacks a word.
func TestRealJobsAreShort(t *testing.T) {
	files, err := filepath.Glob("../fixtures/valid/real-*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d real jobs: %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines >= 40 {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
}
