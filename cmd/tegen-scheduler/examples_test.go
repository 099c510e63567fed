package main

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/cli/clitest"
)

// TestExamples: the flags of every example are those of the command.
func TestExamples(t *testing.T) {
	clitest.ParseExamples(t, newCommand)
}
