package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/krm"
)

const fnLong = `fn is a KRM function: it reads a ResourceList from standard input and writes it
back with the objects of every TrainingJob in it. Items pass through; an
Environment among them is merged into the jobs first; jobs and environments are
marked local, so that nothing applies them.

The binary does the same without arguments when it is called tegen-fn, which is
what kustomize, kpt and a container image need.

Its configuration is one of
  kind: Generator    spec.generators names the generators to run; none means all
  kind: Check        only checks that every reference among the items resolves
  kind: TrainingJob  renders this job
all of apiVersion tegen.dev/v1alpha1, or a ConfigMap with data.generators.

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

func newFnCmd(s streams) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:     "fn",
		Short:   "Run as a KRM function of kustomize or kpt",
		Long:    fnLong,
		Example: fnExample,
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			if list {
				return listGenerators(s.out)
			}
			return runFn(s)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the generators in the order of their output")
	return cmd
}

func listGenerators(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range generators.All {
		if _, err := fmt.Fprintf(t, "%s\t%s\n", g.Name, g.Doc); err != nil {
			return err
		}
	}
	return t.Flush()
}

// resourceList finds a ResourceList's kind, in YAML or JSON, without parsing what may be megabytes twice.
var resourceList = regexp.MustCompile(`(?m)(^|[{,])\s*["']?kind["']?\s*:\s*["']?ResourceList\b`)

func runFn(s streams) error {
	in, err := io.ReadAll(s.in)
	if err != nil {
		return fmt.Errorf("reading the ResourceList: %w", err)
	}
	if !resourceList.Match(in) { // anything else would come back as it is, with success
		return fmt.Errorf("reading the ResourceList: standard input holds no ResourceList; 'tegen render FILE' renders a file")
	}
	return framework.Execute(framework.ResourceListProcessorFunc(krm.Process), &kio.ByteReadWriter{
		Reader:                bytes.NewReader(in),
		Writer:                s.out,
		KeepReaderAnnotations: true,
	})
}
