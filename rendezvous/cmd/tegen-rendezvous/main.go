// Command tegen-rendezvous is the rendezvous of elastic training runs: serve is a service for any torchrun, and proxy
// starts a torchrun that outlives the store of its run.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/daemon"
	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newRootCmd(cli.Streams{In: stdin, Out: stdout, Err: stderr})
	cmd.SetArgs(args)
	err := cmd.Execute()
	var usage cli.UsageError
	var mistake daemon.UsageError
	var coded interface{ ExitCode() int } // the exit code of proxy's command
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &usage), errors.As(err, &mistake):
		// There is nowhere left to report an error of this to.
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\nSee 'tegen-rendezvous --help'.\n", err)
		return cli.ExitUsage
	case errors.As(err, &coded):
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\n", err)
		return coded.ExitCode()
	default:
		_, _ = fmt.Fprintf(stderr, "tegen-rendezvous: %v\n", err)
		return cli.ExitError
	}
}

const rootLong = `tegen-rendezvous is where the agents of elastic training runs find each other.

'serve' is a service for any torchrun: etcd's v2 keys API for the backends etcd
and etcd-v2, and a TCPStore for c10d, in one process that outlives the agents.
'proxy' starts a torchrun that outlives the store of its run.
'install' brings it into containers of other images.
'certificates' makes what serve and its proxies verify each other by.

Exit codes: 0 success, 1 something went wrong, 2 wrong command line.`

const rootExample = `  tegen-rendezvous serve --listen-client=:2379
  tegen-rendezvous proxy -- torchrun --rdzv_backend c10d --rdzv_endpoint etcd:2379 \
    --rdzv_id imagenet --nnodes 2:4 train.py`

func newRootCmd(s cli.Streams) *cobra.Command {
	return cli.Root(s, "tegen-rendezvous", "Let the agents of elastic training runs find each other", rootLong,
		rootExample,
		cli.Group{Title: "Commands", Commands: []*cobra.Command{
			newServeCmd(s),
			newProxyCmd(s),
			newInstallCmd(),
			newCertificatesCmd(),
			newStoreCmd(s),
			newRunCmd(),
			cli.Version(s, "tegen-rendezvous", "Print the version and how it was built"),
		}},
	)
}

// newRunCmd reports that run was removed. It parses no flags: the error is the same for each command line of run.
func newRunCmd() *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Removed",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cli.Usagef("run was removed; use 'tegen-rendezvous proxy -- torchrun …' instead, or torchrun with " +
				"'tegen-rendezvous serve' for backend etcd")
		},
	}
}
