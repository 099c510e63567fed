// Command tegen-rendezvous is where the agents of elastic runs find each other: serve is the service that any torchrun
// can use, run an agent of its own.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/daemon"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // something could not be opened, read or served
	exitUsage = 2 // the command line, or the environment in its place, is wrong
)

// streams are the process's own, or a test's.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newRootCmd(streams{stdin, stdout, stderr})
	cmd.SetArgs(args)
	err := cmd.Execute()
	var usage usageError
	var mistake daemon.UsageError
	var coded interface{ ExitCode() int } // an agent's, which says how it ended
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &mistake):
		// There is nowhere left to report an error of this to.
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\nSee 'tegen-rendezvous --help'.\n", err)
		return exitUsage
	case errors.As(err, &coded):
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\n", err)
		return coded.ExitCode()
	default:
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\n", err)
		return exitError
	}
}

const rootLong = `tegen-rendezvous is where the agents of elastic training runs find each other.

'serve' is a service for any torchrun: etcd's v2 keys API for the backends etcd
and etcd-v2, and a TCPStore for c10d, in one process that outlives the agents.
'run' is an agent: it starts a command's workers as torchrun does.
'install' brings it into containers of other images.

Exit codes: 0 success, 1 something went wrong, 2 wrong command line.`

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func newRootCmd(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "tegen-rendezvous",
		Short:                      "Let the agents of elastic training runs find each other",
		Long:                       rootLong,
		SilenceErrors:              true, // main prints, once
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
			return usagef("unknown command %q%s", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.AddCommand(
		newServeCmd(s),
		newRunCmd(s),
		newInstallCmd(),
		newStoreCmd(s),
		newGuardCmd(s),
		newVersionCmd(s),
	)
	return cmd
}

// nothing is cobra.NoArgs as a usage error.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

func newVersionCmd(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.out, "tegen-rendezvous %s\n%s %s/%s\n",
				buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// buildVersion is the module's version, which 'go install' and release builds record.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
