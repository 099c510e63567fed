package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

const explainLong = `explain prints what a field means, what it may hold, its default, and the fields
below it. Without a field it starts at the top of a TrainingJob. With --targets it
prints what each framework and target can carry, and why not.`

const explainExample = `  tegen explain
  tegen explain spec.rendezvous
  tegen explain spec.storage.efs.provision
  tegen explain --environment spec.storage
  tegen explain --targets`

func newExplainCmd(s cli.Streams) *cobra.Command {
	var environment, targets bool
	kind := func() string {
		if environment {
			return names.KindEnvironment
		}
		return names.KindTrainingJob
	}
	cmd := &cobra.Command{
		Use:     "explain [FIELD]",
		Short:   "Print what a field means",
		Long:    explainLong,
		Example: explainExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("one field at a time, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schema.Paths(kind()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if targets {
				if len(args) > 0 || environment {
					return cli.Usagef("--targets takes no field and no other flag")
				}
				_, err := io.WriteString(s.Out, schema.Support())
				return err
			}
			return runExplain(s.Out, kind(), strings.Join(args, ""))
		},
	}
	cmd.Flags().BoolVar(&targets, "targets", false, "print what each framework and target can carry, as Markdown")
	cmd.Flags().BoolVar(&environment, "environment", false, "explain an Environment instead of a TrainingJob")
	return cmd
}

func runExplain(w io.Writer, kind, path string) error {
	at, below, err := schema.Explain(kind, path)
	if err != nil {
		return err
	}
	var out strings.Builder
	if path == "" {
		fmt.Fprintf(&out, "%s of %s\n", kind, names.APIVersion)
	} else {
		describe(&out, "", at)
	}
	if len(below) > 0 {
		out.WriteString("\nFIELDS\n")
	}
	for _, f := range below {
		describe(&out, "  ", f)
	}
	_, err = io.WriteString(w, out.String())
	return err
}

func describe(out *strings.Builder, indent string, f schema.Field) {
	name := f.Path
	if indent != "" {
		name = name[strings.LastIndex(name, ".")+1:]
	}
	fmt.Fprintf(out, "%s%s", indent, name)
	if f.Required {
		out.WriteString("  (required)")
	} else if f.Default != "" {
		fmt.Fprintf(out, "  (default %s)", f.Default)
	}
	out.WriteString("\n")
	if f.Doc != "" {
		fmt.Fprintf(out, "%s    %s\n", indent, f.Doc)
	}
	fmt.Fprintf(out, "%s    must be %s\n", indent, f.Type)
}
