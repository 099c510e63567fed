package command

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/cli/clitest"
	"github.com/tegen-dev/tegen/internal/golden"
)

// TestGoldenCompletions: what a shell offers for every argument and every flag's value.
func TestGoldenCompletions(t *testing.T) {
	golden.Open(t, "testdata").Compare(t, "completions", clitest.Completions(t, ownCommands))
}
