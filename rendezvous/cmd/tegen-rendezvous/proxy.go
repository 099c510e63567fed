package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/proxy"
)

const proxyLong = `proxy starts a torchrun whose rendezvous outlives its store: torchrun of any age,
as it is, with the backend c10d. Torch's clients never connect to a store again
and end with it; here each machine's torchrun has a store on this machine, and
their keys are in an etcd 3.5 or newer. That may be stopped for any time. While it
runs, it may be out of reach of all proxies for as long as --run-ttl.

The command is started with the endpoint, the backend c10d, is_host=0 and a
read_timeout of 600 s, where it has none of its own, in torchrun's options and
in PET_RDZV_ENDPOINT, PET_RDZV_BACKEND and PET_RDZV_CONF, so that also a script
which calls torchrun finds them. TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1 unless
it is set. --rdzv_id or PET_RDZV_ID says which run it is.

The etcd is --endpoints, or the endpoint that the command names. While it does
not answer, what the agent asks for waits; the processes train on. Each flag can
be set by TEGEN_RENDEZVOUS_ and its name, as TEGEN_RENDEZVOUS_ENDPOINTS. The
password for etcd comes from TEGEN_RENDEZVOUS_PASSWORD, or from the file that
--password-file names; the command does not inherit it.

A node that loses its power or its network is evicted after --evict-after: the
other nodes form a new world, if they are at least as many as --nnodes requires.
If a script calls torchrun, set PET_NNODES to the value of its --nnodes. Without
either, silent nodes are not evicted, and the log has a warning.

An eviction uses no restart of --max_restarts, unless a worker fails before. On
Linux, workers that still run --worker-grace later are killed. Nodes are not
evicted while the etcd is away. If the command sets no --monitor_interval,
PET_MONITOR_INTERVAL is 0.1, so that agents of torch 1.13 notice an eviction as
soon as newer ones.

The store listens on 127.0.0.1, without a password. Access to it, or to the etcd,
is code execution in the workers: set --cacert, --cert and --key. Signals are
handed on to the command.

Exit codes: the command's own, 128+n if signal n ended it, 1 the command was not
started, 2 wrong command line.`

const proxyExample = `  # On each of two to four machines
  tegen-rendezvous proxy -- torchrun --rdzv_backend c10d --rdzv_endpoint etcd:2379 \
    --rdzv_id imagenet --nnodes 2:4 --max_restarts 3 train.py

  # A script that calls torchrun, and an etcd with TLS
  PET_RDZV_ID=imagenet PET_NNODES=2:4 tegen-rendezvous proxy --endpoints https://etcd:2379 \
    --cacert ca.crt --cert tls.crt --key tls.key -- ./train.sh`

func newProxyCmd(s cli.Streams) *cobra.Command {
	var o proxy.Options
	cmd := &cobra.Command{
		Use:     "proxy [flags] [--] COMMAND [ARGUMENT...]",
		Short:   "Start a torchrun that outlives the store of its run",
		Long:    proxyLong,
		Example: proxyExample,

		ValidArgsFunction: anyFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd.Flags(), args, os.LookupEnv); err != nil {
				return cli.Usage(err)
			}
			return o.Run(proxy.Process{Environ: os.Environ(), In: s.In, Out: s.Out, Err: s.Err})
		},
	}
	o.AddFlags(cmd.Flags())
	for _, flag := range []string{"cacert", "cert", "key", "password-file"} {
		completeBy(cmd, flag, anyFile)
	}
	return cmd
}
