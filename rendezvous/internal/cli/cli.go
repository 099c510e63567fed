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

// Version returns a command that prints the version and how the program was built.
func Version(s Streams, name, short string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: short,
		Long: "version prints the version of this program, and what it was built with and for. A build from\n" +
			"source has the version that Go makes of its commit.",
		Example: lines(name+" version", name+" version | head -n 1"),
		Args:    NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "%s %s\n%s %s/%s\n", name, BuildVersion(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return err
		},
	}
}

// BuildVersion is the module's version, which 'go install' and release builds record.
func BuildVersion() string { return names.BuildVersion() }
