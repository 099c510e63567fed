package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// columns is how wide a terminal may be that help is read in.
const columns = "100"

// completeHelp keeps help to the width of a terminal, and gives cobra's own commands what those of the project have:
// examples, and an error where a word is none of theirs.
func completeHelp(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped "+columns+" "))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	name := root.Name()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Use, c.Short = "help [COMMAND]", "Print what a command does, its flags and examples"
			c.Long = "help prints what 'COMMAND --help' does."
			c.Example = lines(name+" help", name+" help completion")
			c.Run, c.RunE = nil, runHelp
		case "completion":
			c.Use, c.Short = "completion SHELL", "Print the script by which a shell completes commands and flags"
			c.Long = "completion prints the script by which a shell completes commands, flags and their\nvalues. The " +
				"help of each shell says where the script goes."
			c.Example = lines(name+" completion bash", name+" completion zsh")
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			c.Args = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return nil
				}
				return OneOf("shell")(c, args)
			}
			for _, shell := range c.Commands() {
				command := shell.CommandPath()
				shell.Short = "Print the script of " + shell.Name()
				shell.Args = NoArgs
				shell.Example = lines(command, command+" --no-descriptions")
			}
		}
	}
}

func lines(examples ...string) string { return "  " + strings.Join(examples, "\n  ") }

func runHelp(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil {
		return Usage(err)
	}
	if len(rest) > 0 {
		return unknownCommand(about, rest[0])
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}
