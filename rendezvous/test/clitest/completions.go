// Package clitest holds the commands of a program to what holds for all of them: what shells complete, that examples
// run, that help can be read.
package clitest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

// Program makes the root command of a program.
type Program func(cli.Streams) *cobra.Command

// walk calls a function for every command that people may call, the outermost first.
func walk(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			walk(c, do)
		}
	}
}

// Completions has a line for the arguments of every command, and for every flag with a value: what a shell offers for
// them.
func Completions(t testing.TB, program Program) []byte {
	t.Helper()
	var text bytes.Buffer
	walk(program(cli.Streams{}), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		fmt.Fprintf(&text, "%s: %s\n", cmd.CommandPath(), offered(t, program, append(path, "")...))
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "bool" && !f.Hidden {
				words := []string{"--" + f.Name, ""}
				if f.NoOptDefVal != "" { // its value cannot be a word of its own
					words = []string{"--" + f.Name + "="}
				}
				fmt.Fprintf(&text, "%s --%s: %s\n", cmd.CommandPath(), f.Name,
					offered(t, program, append(slices.Clip(path), words...)...))
			}
		})
	})
	return text.Bytes()
}

// offered says in words what a shell offers after some words.
func offered(t testing.TB, program Program, words ...string) string {
	t.Helper()
	var out, msg bytes.Buffer
	cmd := program(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &msg})
	cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, words...))
	if err := cmd.Execute(); err != nil {
		t.Fatalf("completing %q: %v", words, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	number, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		t.Fatalf("completing %q: %q has no directive", words, lines)
	}
	var values []string
	for _, line := range lines[:last] {
		value, _, _ := strings.Cut(line, "\t")
		values = append(values, value)
	}
	switch directive := cobra.ShellCompDirective(number); {
	case directive&cobra.ShellCompDirectiveFilterFileExt != 0:
		return "files of " + strings.Join(values, ", ")
	case directive&cobra.ShellCompDirectiveFilterDirs != 0:
		if values != nil {
			t.Errorf("completing %q: shells would offer the directories in %s alone", words, values[0])
		}
		return "directories"
	case directive&cobra.ShellCompDirectiveNoFileComp == 0:
		return strings.TrimSpace(strings.Join(values, " ") + " files")
	case values == nil:
		return "-"
	}
	return strings.Join(values, " ")
}
