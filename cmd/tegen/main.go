// Command tegen renders training jobs into Kubernetes manifests: as a CLI, and as a KRM function of kustomize and kpt.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // the input is wrong, or something could not be read or written
	exitUsage = 2 // the command line is wrong
)

// streams are the process's own, or a test's.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	debug.SetGCPercent(200) // less garbage collection in short runs, and 4,000 jobs stay below 200 MB
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program. Called as tegen-fn, it is the KRM function without further arguments: kustomize and kpt
// give none.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = terminal{stderr}
	s := streams{stdin, stdout, stderr}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	cmd := newRootCmd(s)
	if name == "tegen-fn" {
		cmd.SetArgs(append([]string{"fn"}, args[1:]...))
	} else {
		cmd.SetArgs(args[1:])
	}
	err := cmd.Execute()
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "tegen: %v\nSee 'tegen --help'.\n", err) // there is nowhere left to report to
		return exitUsage
	default:
		_, _ = fmt.Fprintln(stderr, err)
		return exitError
	}
}
