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

	"github.com/tegen-dev/tegen/internal/cli"
)

func main() {
	debug.SetGCPercent(200) // less garbage collection in short runs, and 4,000 jobs stay below 200 MB
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program. Called as tegen-fn, it is the KRM function without further arguments: kustomize and kpt
// give none.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = terminal{stderr}
	s := cli.Streams{In: stdin, Out: stdout, Err: stderr}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	cmd := newRootCmd(s)
	if name == "tegen-fn" {
		cmd.SetArgs(append([]string{"fn"}, args[1:]...))
	} else {
		cmd.SetArgs(args[1:])
	}
	err := cmd.Execute()
	var usage cli.UsageError
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "tegen: %v\nSee 'tegen --help'.\n", err) // there is nowhere left to report to
		return cli.ExitUsage
	default:
		_, _ = fmt.Fprintln(stderr, err)
		return cli.ExitError
	}
}
