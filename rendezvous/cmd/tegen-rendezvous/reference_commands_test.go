package main

import (
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/test/clitest"
	"github.com/tegen-dev/tegen/rendezvous/test/golden"
)

// TestGoldenCommands: docs/commands-rendezvous.md is the help of every command, no line of which is too wide.
func TestGoldenCommands(t *testing.T) {
	const intro = "What `COMMAND --help` prints, of every command of the [rendezvous](rendezvous.md)."
	page := clitest.Reference(t, newRootCmd, "Commands of tegen-rendezvous", intro)
	golden.Open(t, "../../../docs").Compare(t, "commands-rendezvous.md", page)
}
