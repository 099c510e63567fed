package command

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
)

const fnLong = `fn is a KRM function: it reads a ResourceList from standard input and writes it
back with the objects of every TrainingJob in it. Objects of other APIs pass
through. The Environment that the configuration names is merged into the jobs
first; any other is an error. Jobs and the Environment are marked local, so that
nothing applies them.

The binary does the same without arguments when it is called tegen-fn, which is
what kustomize, kpt and a container image need.

Its configuration is one of
  kind: Generator    spec.environment names the Environment among the items;
                     spec.generators names the generators to run; none means all;
                     spec.jobs: drop leaves jobs out of the answer, for kustomize
  kind: Check        only checks that every reference among the items resolves
  kind: TrainingJob  renders this job
all of apiVersion tegen.dev/v1alpha1, or a ConfigMap with data.generators and
data.environment.

Put it under 'transformers' of a kustomization. kustomize needs
--enable-alpha-plugins AND --enable-exec: with the first flag alone it runs no
function and still exits 0, with the jobs themselves as output, or with nothing
where the function stands under 'generators'.`

const fnExample = `  # which generators there are
  tegen fn --list

  # in a kustomization, with this as tegen.yaml under transformers:
  #   apiVersion: tegen.dev/v1alpha1
  #   kind: Generator
  #   metadata:
  #     name: tegen
  #     annotations:
  #       config.kubernetes.io/function: |
  #         exec: {path: tegen, args: [fn]}
  kustomize build --enable-alpha-plugins --enable-exec overlays/kind`

func newFnCmd(s cli.Streams, set generators.Set) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:     "fn",
		Short:   "Run as a KRM function of kustomize or kpt",
		Long:    fnLong,
		Example: fnExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if list {
				return listGenerators(s.Out, set)
			}
			return runFn(s, set)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the generators in the order of their output")
	return cmd
}

func listGenerators(w io.Writer, set generators.Set) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range set.All() {
		if _, err := fmt.Fprintf(t, "%s\t%s\n", g.Name, g.Doc); err != nil {
			return err
		}
	}
	return t.Flush()
}

func runFn(s cli.Streams, set generators.Set) error {
	in, err := io.ReadAll(s.In)
	if err != nil {
		return fmt.Errorf("reading the ResourceList: %w", err)
	}
	return krm.Run(set, in, s.Out, s.Err)
}
