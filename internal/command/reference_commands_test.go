package command

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/cli/clitest"
	"github.com/tegen-dev/tegen/internal/golden"
)

// TestGoldenCommands: docs/commands.md is the help of every command, no line of which is too wide.
func TestGoldenCommands(t *testing.T) {
	const intro = "What `COMMAND --help` prints, of every command. `tegen man DIR` writes the same as manual\n" +
		"pages, and `tegen completion SHELL` prints by what bash, zsh, fish and PowerShell complete commands,\n" +
		"files, fields and values."
	page := clitest.Reference(t, ownCommands, "Commands of tegen", intro)
	golden.Open(t, "../../docs").Compare(t, "commands.md", page)
}

// TestManual: there is a manual page for each command, with which those who read such pages find no fault.
func TestManual(t *testing.T) { clitest.Manual(t, ownCommands) }
