// Package cli holds what the project's own commands do alike: streams, mistakes on the command line, the root command
// and the version. It knows none of them.
package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // the input is wrong, or something could not be opened, read, written or served
	ExitUsage = 2 // the command line, or the environment in its place, is wrong
)

// Streams are the process's own, or a test's.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// UsageError is a mistake on the command line, or in an environment variable that stands for a flag.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

// Usage returns a mistake as a usage error.
func Usage(err error) error { return UsageError{err} }

// Usagef formats a usage error.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Root returns a command of subcommands: without arguments it prints its help, and of an unknown one it suggests the
// nearest. It prints no error, since main does so once.
func Root(s Streams, name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        name,
		Short:                      short,
		Long:                       long,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2, // letters
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("; did you mean %q?", near[0])
			}
			return Usagef("unknown command %q%s", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	cmd.AddCommand(commands...)
	return cmd
}

// NoArgs is cobra.NoArgs as a usage error.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// AtLeastOne is cobra.MinimumNArgs(1) as a usage error; what names an argument.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("no %s given", what)
		}
		return nil
	}
}

// Version returns a command that prints the version, a line for each of more, and how the program was built.
func Version(s Streams, name, short string, more ...string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: short,
		Args:  NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text := name + " " + BuildVersion() + "\n"
			for _, line := range more {
				text += line + "\n"
			}
			_, err := fmt.Fprintf(s.Out, "%s%s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// BuildVersion is the module's version, which 'go install' and release builds record.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
