package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/daemon"
	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

const serveLong = `serve lets agents find each other through four listeners:

  --listen-client   etcd's v2 keys API, for torchrun --rdzv_backend=etcd or etcd-v2
  --listen-c10d     a TCPStore, for torchrun --rdzv_backend=c10d, of any age
  --listen-proxies  the store, for torchrun --rdzv_backend=c10d below a proxy
                    (tegen-rendezvous proxy), which outlives it
  --listen-status   /healthz, /readyz, /metrics and /runs

Access to one of the first three is code execution in the workers: torch
unpickles what it reads from its store. The TCPStore has neither encryption nor
authentication. The other two require client certificates with --tls-cert,
--tls-key and --tls-client-ca, which 'tegen-rendezvous certificates' makes. By
default each listener is open to this machine alone: --listen-c10d=:29400 is for
all who reach the machine. /runs answers only requests from this machine.

The keys API and proxies keep their data in an etcd server, a process that this
one starts, or in an etcd cluster that exists; then any number of replicas serve
the same runs. Without their listeners (--listen-client=) no store is opened.
Proxies reach the keys below /tegen/c10d/ and no others of an etcd, and need no
credentials for it. While the disk of --data-dir is full, writes to the keys API
are answered with status 507, those of proxies wait, all else goes on, and /readyz
answers 503 with the reason.

The TCPStore keeps a run in memory, until its last connection is closed: torch's
clients do not come back. So on the first SIGTERM it waits for such runs, at
most for --drain-timeout; on the second it ends at once.

Each flag can be set by TEGEN_RENDEZVOUS_ and its name, as
TEGEN_RENDEZVOUS_LISTEN_C10D. The password for etcd is no flag, because any
process may read those of others: it comes from TEGEN_RENDEZVOUS_PASSWORD or
from the file that --password-file names.`

const serveExample = `  # One process that keeps its data, for agents on other machines
  tegen-rendezvous serve --data-dir /var/lib/tegen-rendezvous --listen-client=:2379 \
    --listen-c10d=:29400

  # The same for torchruns that outlive it, each below a proxy
  tegen-rendezvous serve --data-dir /var/lib/tegen-rendezvous --listen-client= --listen-c10d= \
    --listen-proxies=:29400
  tegen-rendezvous proxy -- torchrun --rdzv_backend=c10d --rdzv_endpoint=rendezvous:29400 \
    --rdzv_id=a --nnodes=2:4 train.py

  # One of several replicas in front of an etcd cluster
  tegen-rendezvous serve --listen-client=:2379 --store=etcd --endpoints=https://etcd:2379 \
    --cacert=ca.crt --cert=tls.crt --key=tls.key --advertise-client-urls=http://rendezvous:2379

  # What agents are then started with
  torchrun --rdzv_backend=c10d --rdzv_endpoint=rendezvous:29400 --rdzv_id=a --nnodes=2:4 train.py
  torchrun --rdzv_backend=etcd --rdzv_endpoint=rendezvous:2379 --rdzv_id=a --nnodes=2:4 train.py`

const serveCommand = "serve"

func newServeCmd(s cli.Streams) *cobra.Command {
	var o daemon.Options
	cmd := &cobra.Command{
		Use:     serveCommand,
		Short:   "Serve rendezvous to torchrun",
		Long:    serveLong,
		Example: serveExample,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			o.StoreCommand, o.Version = []string{self, storeCommand}, cli.BuildVersion()
			return daemon.Run(o, s.Err)
		},
	}
	o.AddFlags(cmd.Flags())
	for flag, values := range map[string][]string{
		"store": {"embedded", "etcd"}, "log-format": {"json", "text"}, "log-level": {"debug", "info", "warn", "error"},
	} {
		completeBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	completeBy(cmd, "data-dir", directories)
	for _, flag := range []string{"cacert", "cert", "key", "tls-cert", "tls-key", "tls-client-ca", "password-file"} {
		completeBy(cmd, flag, anyFile)
	}
	return cmd
}
