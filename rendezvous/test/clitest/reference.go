package clitest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

// widest is how wide a line of help may be.
const widest = 100

// Reference is a page of Markdown with the help of every command, no line of which is too wide for a terminal.
func Reference(t testing.TB, program Program, title, intro string) []byte {
	t.Helper()
	var page bytes.Buffer
	fmt.Fprintf(&page, "# %s\n\n%s\n", title, intro)
	walk(program(cli.Streams{}), func(cmd *cobra.Command) {
		var help bytes.Buffer
		root := program(cli.Streams{In: strings.NewReader(""), Out: &help, Err: &help})
		root.SetArgs(append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		if err := root.Execute(); err != nil {
			t.Fatalf("the help of %s: %v", cmd.CommandPath(), err)
		}
		for line := range strings.Lines(help.String()) {
			if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > widest {
				t.Errorf("the help of %s has a line of %d columns, more than %d: %s", cmd.CommandPath(), columns,
					widest, line)
			}
		}
		fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(),
			strings.TrimSpace(strings.ReplaceAll(help.String(), "\t", "    ")))
	})
	return page.Bytes()
}
