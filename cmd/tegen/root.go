package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const rootLong = `tegen renders distributed training jobs into Kubernetes manifests.

One short YAML file says what a job is; a schema checks it, and every object
that the job needs comes out, the same bytes each time, for Argo CD, Flux or
kubectl to apply. It never talks to a cluster or to the network.

Exit codes: 0 success, 1 wrong input, 2 wrong command line.`

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func newRootCmd(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "tegen",
		Short:                      "Render distributed training jobs into Kubernetes manifests",
		Long:                       rootLong,
		SilenceErrors:              true, // main prints, once
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2, // letters
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("; did you mean %q?", near[0])
			}
			return usagef("unknown command %q%s", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.AddCommand(
		newRenderCmd(s),
		newVetCmd(s),
		newPlanCmd(s),
		newCheckCmd(s),
		newImportCmd(s),
		newInstallCmd(s),
		newExplainCmd(s),
		newFnCmd(s),
		newVersionCmd(s),
	)
	return cmd
}

// atLeastOne is cobra.MinimumNArgs(1) as a usage error.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("no %s given", what)
		}
		return nil
	}
}

// nothing is cobra.NoArgs as a usage error.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// yamlFiles completes the names of YAML files.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
