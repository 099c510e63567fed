package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffLimit: diff refuses more objects than it takes before it compares them.
func TestDiffLimit(t *testing.T) {
	var text strings.Builder
	for i := range maxObjects + 1 {
		fmt.Fprintf(&text, "{apiVersion: v1, kind: Pod, metadata: {name: a%d}}\n---\n", i)
	}
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "40001 objects, more than the limit of 40000: compare them in parts"
	if _, err := readSide(t.Context(), nil, path, "-"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
