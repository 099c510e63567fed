package clitest

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// fewest is how many examples the help of a command has at least.
const fewest = 2

// Examples are the lines for a shell in the help of a command, without comments.
func Examples(cmd *cobra.Command) (lines []string) {
	whole := strings.ReplaceAll(cmd.Example, "\\\n", "")
	for line := range strings.Lines(whole) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// RunExamples has do run the examples of each command, in their order. A command with fewer than two fails.
func RunExamples(t *testing.T, root *cobra.Command, do func(t *testing.T, lines []string)) {
	t.Helper()
	walk(root, func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			lines := Examples(cmd)
			if len(lines) < fewest {
				t.Errorf("%s has %d examples, fewer than %d: %q", cmd.CommandPath(), len(lines), fewest, lines)
			}
			do(t, lines)
		})
	})
}

// ParseExamples parses the flags of examples, where running them takes a cluster. Lines of other programs are not
// looked at.
func ParseExamples(t *testing.T, root func() *cobra.Command) {
	t.Helper()
	RunExamples(t, root(), func(t *testing.T, lines []string) {
		for _, line := range lines {
			for _, end := range []string{" | ", " && "} { // what follows is another program
				line, _, _ = strings.Cut(line, end)
			}
			words := strings.Fields(line)
			if words[0] != root().Name() {
				continue
			}
			cmd, args, err := root().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}
