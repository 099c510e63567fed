package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/test/clitest"
)

// TestExamples: the flags of every example are those of its command.
func TestExamples(t *testing.T) {
	clitest.ParseExamples(t, func() *cobra.Command { return newRootCmd(cli.Streams{}) })
}

// TestTorchrunFlags: torchrun before 2.0 knows its flags with underscores alone, and later ones know both forms.
func TestTorchrunFlags(t *testing.T) {
	t.Parallel()
	newer := regexp.MustCompile(`--(rdzv|max|nproc|monitor|node|master)-\w+`)
	commands := newRootCmd(cli.Streams{}).Commands()
	for _, c := range append(commands, newRootCmd(cli.Streams{})) {
		for _, found := range newer.FindAllString(c.Example+c.Long, -1) {
			if c.Flags().Lookup(strings.TrimPrefix(found, "--")) == nil {
				t.Errorf("%s says %s, which torchrun 1.13 refuses", c.Name(), found)
			}
		}
	}
}
