// Command tegen-rendezvous is where the agents of elastic jobs find each other, and an agent.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

type streams struct {
	in       io.Reader
	out, err io.Writer
}

type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{stdin, stdout, stderr}
	cmd := &cobra.Command{Use: "tegen-rendezvous", SilenceErrors: true, SilenceUsage: true}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.AddCommand(newRunCmd(s))
	cmd.SetArgs(args)
	err := cmd.Execute()
	var usage usageError
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\nSee 'tegen-rendezvous --help'.\n", err)
		return 2
	case errors.As(err, &coded):
		_, _ = fmt.Fprintln(stderr, err)
		return coded.ExitCode()
	default:
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
}
