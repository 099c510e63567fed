package command

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/starter"
	"github.com/tegen-dev/tegen/schema/job"
)

const initLong = `init writes what a repository of training jobs starts with, and asks nothing: a job,
the place where it runs as a kustomization with an Environment, a workflow of GitHub or
GitLab and a pre-commit hook that hold every commit to it. All of it can be rendered as
it is; the comments say what to change.

It writes every file or none, and none in the place of one that is there.`

const initExample = `  tegen init
  tegen init --framework horovod --target mpijob --overlay overlays/eks jobs-of-my-team
  tegen init --list`

func newInitCmd(s cli.Streams) *cobra.Command {
	o := starter.Options{Version: cli.BuildVersion()}
	var list bool
	cmd := &cobra.Command{
		Use:        "init [DIR]",
		SuggestFor: []string{"new", "create"},
		Short:      "Write what a repository of jobs starts with",
		Long:       initLong,
		Example:    initExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("init takes one directory, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: one(directories),
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return listStarters(s)
			}
			return runInit(s, o, append(args, ".")[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Framework, "framework", job.FrameworkTorchelastic, "framework of the job")
	flags.StringVar(&o.Target, "target", "", "what the workers become (default: the framework's first of --list)")
	flags.StringVar(&o.Overlay, "overlay", "overlays/cluster", "directory of the place below DIR")
	flags.StringVar(&o.CI, "ci", starter.GitHub, "whose workflow to write: github, gitlab or none")
	flags.BoolVar(&list, "list", false, "list the frameworks that there is a job for, and their targets; write nothing")
	complete(cmd, "framework", starter.Frameworks()...)
	complete(cmd, "ci", starter.CIs...)
	ofFramework := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return starter.TargetsOf(o.Framework), cobra.ShellCompDirectiveNoFileComp
	}
	completeBy(cmd, "target", ofFramework)
	completeBy(cmd, "overlay", directories)
	return cmd
}

func runInit(s cli.Streams, o starter.Options, dir string) error {
	if targets := starter.TargetsOf(o.Framework); o.Target == "" && targets != nil {
		o.Target = targets[0]
	}
	all, err := starter.Files(o)
	if err != nil {
		return cli.Usage(err)
	}
	if err := writeNew(dir, all); err != nil {
		return err
	}
	in := ""
	if dir != "." {
		in = ", in " + dir
	}
	_, err = fmt.Fprintf(s.Out, "%s\n\nThen%s:\n  tegen vet jobs --overlay %s\n  tegen render jobs --overlay %[3]s -o "+
		"rendered/%s\n  tegen runbook %s --overlay %[3]s\n", strings.Join(slices.Sorted(maps.Keys(all)), "\n"), in,
		o.Overlay, path.Base(o.Overlay), starter.JobFile)
	return err
}

// listStarters prints what each framework starts with, and on which targets.
func listStarters(s cli.Streams) error {
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(t, "FRAMEWORK\tTARGETS")
	for _, framework := range starter.Frameworks() {
		if err == nil {
			_, err = fmt.Fprintf(t, "%s\t%s\n", framework, strings.Join(starter.TargetsOf(framework), ", "))
		}
	}
	return errors.Join(err, t.Flush())
}
