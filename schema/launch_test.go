package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestLaunch: an author's own launcher is found where it starts one, and nothing that only looks like one.
func TestLaunch(t *testing.T) {
	torch, entrypoint, dlrover := job.Spec{Framework: job.FrameworkTorchelastic, Launcher: job.LauncherTorchrun},
		job.Spec{Framework: job.FrameworkTorchelastic, Launcher: job.LauncherEntrypoint},
		job.Spec{Framework: job.FrameworkDLRover}
	for _, c := range []struct {
		spec          job.Spec
		command, args string // words apart by "|"
		want          string // program and options, "-" where tegen starts the launcher
	}{
		{torch, "python|train.py", "", "-"},
		{torch, "echo", "torchrun|--nnodes=2", "-"},
		{torch, "torchrun|--nproc-per-node|8|train.py", "--nnodes=3", "torchrun nproc_per_node=8"},
		{torch, "python|-m|torch.distributed.run|--standalone|x.py", "", "torch.distributed.run standalone="},
		{entrypoint, "", "--nproc_per_node=1|main.py|--nnodes=9", " nproc_per_node=1"},
		{entrypoint, "serve", "--nproc_per_node=1", "-"},
		{entrypoint, "bash|-c|exec torchrun --nnodes 2:3 x.py", "", "torchrun nnodes=2:3"},
		{entrypoint, "bash|-c|# torchrun --nnodes=9 was too many\npython t.py --nnodes=4", "", "-"},
		{entrypoint, "bash|-c|torchrun --nnodes=1 a.py; torchrun --nnodes=2 b.py", "", "torchrun"},
		{
			dlrover, "/bin/bash|-c|dlrover-run --network-check --nnodes 3:$NODE_NUM x.py", "",
			"dlrover-run network_check= nnodes=3:$NODE_NUM",
		},
		{dlrover, "/bin/bash", "-c|dlrover-run --nnodes '2' x.py", "dlrover-run nnodes=2"},
		{dlrover, "python|train.py", "--log|x|dlrover-run", "-"},
	} {
		split := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == '|' }) }
		c.spec.Command, c.spec.Args = split(c.command), split(c.args)
		got := "-"
		if l := c.spec.Launch(); l != nil {
			got = l.Program
			for _, o := range l.Options {
				got += " " + o.Name + "=" + o.Value
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.command, c.args, got, c.want)
		}
	}
}
