package upstream_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/test/upstream"
)

func TestDir(t *testing.T) {
	t.Setenv("TEGEN_CRDS", "")
	above := t.TempDir()
	root := filepath.Join(above, "checkout")
	if dir, err := upstream.Dir(root); !errors.Is(err, upstream.ErrAbsent) {
		t.Errorf("got %q, %v, want %v", dir, err, upstream.ErrAbsent)
	}
	want := filepath.Join(above, "shared", "crds")
	if err := os.MkdirAll(want, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err := upstream.Dir(root); dir != want || err != nil {
		t.Errorf("got %q, %v, want %q", dir, err, want)
	}
	// A folder that was named and is not there must not pass for none.
	t.Setenv("TEGEN_CRDS", "named")
	if dir, err := upstream.Dir(root); dir != "named" || err != nil {
		t.Errorf("got %q, %v, want the folder that TEGEN_CRDS names", dir, err)
	}
}

// TestSetAside keeps the reasons from becoming empty words.
func TestSetAside(t *testing.T) {
	for file, reason := range upstream.SetAside {
		if !strings.HasSuffix(reason, ".") || strings.Count(reason, " ") < 4 {
			t.Errorf("%s needs a sentence for a reason, has %q", file, reason)
		}
	}
}
