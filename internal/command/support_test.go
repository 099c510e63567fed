package command

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/schema/machine"
	"github.com/tegen-dev/tegen/schema/target"
)

// TestGoldenSupport holds docs/support.md to the table by which jobs are refused; generators' TestSupport holds that
// table to what is rendered.
func TestGoldenSupport(t *testing.T) {
	golden.Open(t, "../../docs").Compare(t, "support.md", []byte(target.Support()))
}

// TestGoldenMachines holds docs/machines.md to the table of machine types.
func TestGoldenMachines(t *testing.T) {
	golden.Open(t, "../../docs").Compare(t, "machines.md", []byte(machine.Page()))
}
