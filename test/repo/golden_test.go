package repo

import (
	"strings"
	"testing"
)

// mostGolden is how many lines of golden files people can be expected to read and keep.
const mostGolden = 45_000

// TestGoldenBudget: a new case has digests in golden/objects.txt, unless it is one that people read.
func TestGoldenBudget(t *testing.T) {
	lines := 0
	for _, name := range files(t) {
		if strings.HasPrefix(name, "golden/") {
			lines += strings.Count(read(t, name), "\n")
		}
	}
	if lines > mostGolden {
		t.Errorf("golden/ has %d lines, more than %d: remove cases from test/cases/full.go and run 'make golden'",
			lines, mostGolden)
	}
}
