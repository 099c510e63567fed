package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

// Manual writes the manual pages of a program and has them read by what is here of groff and mandoc, neither of which
// may have anything to say of them. There is a page for each command.
func Manual(t *testing.T, program Program) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man1")
	root := program(cli.Streams{})
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages := 0
	walk(root, func(cmd *cobra.Command) {
		pages++
		name := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "\n.SH EXAMPLES\n") {
			t.Errorf("the page of %s: %v, with %d bytes", cmd.CommandPath(), err, len(text))
		}
	})
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != pages {
		t.Errorf("%d pages of %d commands: %v", len(files), pages, err)
	}
	for _, reader := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-ww", "-man", "-Tutf8"}} {
		t.Run(reader[0], func(t *testing.T) {
			if _, err := exec.LookPath(reader[0]); err != nil {
				t.Skipf("there is no %s here to read manual pages: install it", reader[0])
			}
			cmd := exec.CommandContext(t.Context(), reader[0], append(reader[1:], files...)...)
			var said strings.Builder
			cmd.Stderr = &said
			if reader[0] == "mandoc" {
				cmd.Stdout = &said
			}
			_ = cmd.Run() // what it says counts
			for line := range strings.Lines(said.String()) {
				if !strings.Contains(line, "missing date") { // a test's binary does not know its commit
					t.Error(strings.TrimSpace(line))
				}
			}
		})
	}
}
