package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/test/clitest"
)

// TestExamples: the flags of every example are those of its command.
func TestExamples(t *testing.T) {
	clitest.ParseExamples(t, func() *cobra.Command { return newRootCmd(cli.Streams{}) })
}
