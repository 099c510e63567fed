// Package command is the program tegen, as a CLI and as a KRM function of kustomize and kpt: it parses flags, opens
// files and prints. Main returns the exit code. The list of generators is a parameter of what needs it, so two programs
// with different generators differ in one call.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/progress"
)

// Main runs the program with tegen's own generators and more, and returns its exit code.
func Main(more ...generators.Generator) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // by default a render of one job would collect garbage once, for nothing
	}
	set, err := generators.NewSet(more...)
	if err != nil { // a mistake of whoever built the program: no input can correct it
		_, _ = fmt.Fprintf(os.Stderr, "tegen: %v\n", err)
		return cli.ExitUsage
	}
	return run(set, os.Args, os.Stdin, os.Stdout, os.Stderr)
}

// run is the whole program. Called as tegen-fn, it is the KRM function without further arguments: kustomize and kpt
// give none.
func run(set generators.Set, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	line := progress.Start(stderr, os.Getenv, title(args[1:]), progress.After)
	defer line.End()
	paint := &painter{w: line.Writer(stderr)}
	s := cli.Streams{
		In: line.Reader(stdin), Out: line.Writer(stdout), Err: terminal{w: paint}, Doing: line.Doing,
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	cmd := newRootCmd(s, set)
	paint.mode = cmd.PersistentFlags().Lookup(colorFlag).Value
	if name == "tegen-fn" {
		cmd.SetArgs(append([]string{"fn"}, args[1:]...))
	} else {
		cmd.SetArgs(args[1:])
	}
	called, err := execute(cmd)
	return finish(s, called, args[1:], err)
}

// execute runs a command. A panic in what concerns all jobs is a fault of tegen and ends here; that in one job ends in
// packages schema and render.
func execute(cmd *cobra.Command) (called *cobra.Command, err error) {
	called = cmd
	defer func() {
		if r := recover(); r != nil {
			err = finding.List{{Rule: finding.InternalRule, Level: finding.Error, Message: finding.Internal(r)}}
		}
	}()
	return cmd.ExecuteC()
}

// title is what a command line is called: the program and its command.
func title(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "tegen"
	}
	return "tegen " + printable(args[0])
}

// finish prints the error of a command, unless the command did, and returns the exit code.
func finish(s cli.Streams, called *cobra.Command, args []string, err error) int {
	var usage cli.UsageError
	var printed reported
	code := cli.ExitError
	isUsage := errors.As(err, &usage)
	switch {
	case err == nil:
		return cli.ExitOK
	case isUsage, asFindings(err).HasInternal():
		code = cli.ExitUsage
	}
	if errors.As(err, &printed) {
		return code
	}
	if format := machineFormat(called, args); format != "" {
		r := finding.Report{Command: called.Name(), Findings: asFindings(err)}
		if failed := printReport(s.Out, r, format); failed != nil {
			_, _ = fmt.Fprintln(s.Err, failed)
		}
		return code
	}
	if isUsage {
		_, _ = fmt.Fprintf(s.Err, "tegen: %v\nSee 'tegen --help'.\n", err) // there is nowhere left to report to
	} else {
		_, _ = fmt.Fprintln(s.Err, err)
	}
	return code
}
