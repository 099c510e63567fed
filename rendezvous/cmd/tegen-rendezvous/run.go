package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/agent"
	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/launcher"
)

const runLong = `run starts the workers of this machine, and keeps them in step with those of
other machines: with torchrun's flags, its PET_* variables and its environment
for workers, for any program. Flags win over variables; - and _ are the same.

Each worker finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
torchrun's other variables in its environment. ${local_rank} in an argument is
replaced. When a worker fails, those of this machine are restarted, as often as
--max-restarts says; when machines come or go, all are, and that does not count.
Signals are handed on to the workers, which have --shutdown-timeout to
end; then this agent leaves, and the others go on. Under Kubernetes keep it
some seconds below terminationGracePeriodSeconds.

--rdzv-backend etcd speaks PyTorch's own protocol, in one world with torchrun
--rdzv_backend=etcd, by etcd's v2 API or 'tegen-rendezvous serve'. etcd-v3 is
for worlds of tegen-rendezvous alone: it needs an etcd, and is much faster. The
password of the user in --rdzv-conf may be in TEGEN_RENDEZVOUS_PASSWORD instead.

Exit codes: 0 all workers succeeded, 1 the job failed, 2 wrong command line,
128+n ended by signal n.`

const runExample = `  # Two workers on this machine, with nothing installed
  tegen-rendezvous run --standalone --nproc-per-node 2 -- python train.py

  # One of two to four machines
  tegen-rendezvous run --nnodes 2:4 --nproc-per-node gpu --max-restarts 3 \
    --rdzv-backend etcd-v3 --rdzv-endpoint etcd:2379 --rdzv-id imagenet -- python train.py`

func newRunCmd(s cli.Streams) *cobra.Command {
	o := launcher.NewOptions()
	cmd := &cobra.Command{
		Use:     "run [flags] [--] COMMAND [ARGUMENT...]",
		Short:   "Start the workers of this machine, in step with those of others",
		Long:    runLong,
		Example: runExample,

		ValidArgsFunction: anyFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd.Flags(), os.LookupEnv); err != nil {
				return cli.Usage(err)
			}
			if len(args) == 0 {
				return cli.Usagef("no command given: tegen-rendezvous run [flags] -- COMMAND")
			}
			guard, err := guardProgram()
			if err != nil {
				return err
			}
			return o.Run(cmd.Context(), launcher.Process{
				Command: args, Environ: os.Environ(), Guard: guard, Out: s.Out, Err: s.Err,
			})
		},
	}
	o.AddFlags(cmd.Flags())
	completeBy(cmd, "rdzv-backend", cobra.FixedCompletions([]string{"etcd", "etcd-v3"},
		cobra.ShellCompDirectiveNoFileComp))
	completeBy(cmd, "nproc-per-node", cobra.FixedCompletions([]string{"auto", "cpu", "gpu"},
		cobra.ShellCompDirectiveNoFileComp))
	completeBy(cmd, "log-dir", directories)
	return cmd
}

// guardCommand is what run starts to end its workers' processes after it was killed.
const guardCommand = "guard"

// guardProgram is this binary again. PID 1 needs none: with it ends all that runs in its container.
func guardProgram() ([]string, error) {
	if os.Getpid() == 1 {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{self, guardCommand}, nil
}

func newGuardCmd(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:    guardCommand,
		Short:  "End the processes of workers after run, which starts this",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return agent.Guard(s.In) },
	}
}
