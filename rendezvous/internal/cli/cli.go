// Package cli holds what the project's own commands do alike: streams, mistakes on the command line, the root command
// and the version. It knows none of them.
package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/names"
)

// Exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // the input is wrong, or something could not be opened, read, written or served
	ExitUsage = 2 // the command line, or the environment in its place, is wrong; or the program itself failed
)

// Streams are the process's own, or a test's.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	Doing func(what func() string) // tells who waits what the command is at; nil where nobody is told
}

// UsageError is a mistake on the command line, or in an environment variable that stands for a flag.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

// Usage returns a mistake as a usage error.
func Usage(err error) error { return UsageError{err} }

// Usagef formats a usage error.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

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
		Long: "version prints the version of this program, and what it was built with and for. A build from\n" +
			"source has the version that Go makes of its commit.",
		Example: lines(name+" version", name+" version | head -n 1"),
		Args:    NoArgs,
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
func BuildVersion() string { return names.BuildVersion() }
