package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/internal/spelling"
)

// Group is a part of a program's help: commands below a title.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// Root returns a command of subcommands: without arguments it prints its help, and of an unknown one, or an unknown
// flag, it suggests the nearest. It prints no error, since main does so once. The last group has help and completion
// too.
func Root(s Streams, name, short, long, example string, groups ...Group) *cobra.Command {
	cmd := &cobra.Command{
		Use:           name,
		Short:         short,
		Long:          long,
		Example:       example,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return oneDash(cmd.Flags()) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SetFlagErrorFunc(flagError)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	last := ""
	for _, g := range groups {
		cmd.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title + ":"})
		for _, c := range g.Commands {
			c.GroupID = g.Title
		}
		cmd.AddCommand(g.Commands...)
		last = g.Title
	}
	cmd.SetHelpCommandGroupID(last)
	cmd.SetCompletionCommandGroupID(last)
	completeHelp(cmd)
	return cmd
}

// unknownCommand is the error about a word that is no command below this one. It names the nearest, or what the word is
// called here.
func unknownCommand(cmd *cobra.Command, word string) error {
	return Usagef("unknown command %q%s", word, suggestCommand(cmd, word))
}

func suggestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return spelling.Suggest(c.Name(), []string{c.Name()})
		}
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return spelling.Suggest(word, names)
}

// OneOf is the Args of a command that does nothing without one of those below it. what is what these are called.
func OneOf(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		all := strings.Join(names, ", ")
		if len(args) == 0 {
			return Usagef("%s needs a %s; there is: %s", cmd.CommandPath(), what, all)
		}
		return Usagef("%s has no %s %q; there is: %s%s", cmd.CommandPath(), what, args[0], all,
			spelling.Suggest(args[0], names))
	}
}

// flagError names the flag that is nearest to one that does not exist, or the command that somebody took for a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usage(err)
	}
	word, _, _ := strings.Cut(unknown.GetSpecifiedName(), "=")
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		word, _, _ = strings.Cut(short, "=") // a long name behind a single dash
	}
	if len(word) < 2 {
		return Usage(err)
	}
	var names, commands []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	for _, c := range cmd.Commands() {
		commands = append(commands, c.CommandPath())
	}
	if command := cmd.CommandPath() + " " + word; slices.Contains(commands, command) {
		return Usagef("%w; did you mean %q?", err, command)
	}
	return Usagef("%w%s", err, spelling.Suggest("--"+word, names))
}

// oneDash refuses a long flag behind a single dash, which is read as a short one and its value: -overlay as -o verlay.
func oneDash(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		word, _, _ := strings.Cut(f.Shorthand+f.Value.String(), "=")
		if f.Shorthand != "" && flags.Lookup(word) != nil {
			err = Usagef("-%s is read as -%s with the value %q: write --%[1]s", word, f.Shorthand, f.Value)
		}
	})
	return err
}
