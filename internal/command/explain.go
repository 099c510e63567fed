package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/target"
)

const explainLong = `explain prints what a field means, what it may hold, its default, and the fields
below it. Without a field it starts at the top of a TrainingJob. With --recursive it
prints the names of all fields below, whatever their depth, and with -o json all of
that as data. With --targets it prints what each framework and target can carry, and
why not.`

const explainExample = `  tegen explain
  tegen explain spec.rendezvous
  tegen explain spec.storage.efs.provision
  tegen explain --environment spec.storage
  tegen explain spec.gang --recursive
  tegen explain spec.workers -o json
  tegen explain --targets`

func newExplainCmd(s cli.Streams) *cobra.Command {
	var environment, targets, recursive bool
	formats := []string{"text", "json"}
	output := formats[0]
	kind := func() string {
		if environment {
			return names.KindEnvironment
		}
		return names.KindTrainingJob
	}
	cmd := &cobra.Command{
		Use:        "explain [FIELD]",
		SuggestFor: []string{"doc", "docs"},
		Short:      "Print what a field means",
		Long:       explainLong,
		Example:    explainExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("one field at a time, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: one(fieldsOf(kind)),
		RunE: func(_ *cobra.Command, args []string) error {
			if targets {
				if len(args) > 0 || environment || recursive || output != formats[0] {
					return cli.Usagef("--targets takes no field and no other flag")
				}
				_, err := io.WriteString(s.Out, target.Support())
				return err
			}
			if !slices.Contains(formats, output) {
				return cli.Usagef("unknown output %q: -o of explain is a format, one of %s%s", output,
					strings.Join(formats, ", "), spelling.Suggest(output, formats))
			}
			e, err := explain(kind(), strings.TrimSuffix(strings.Join(args, ""), "."), recursive)
			if err != nil {
				return err
			}
			if output == "text" {
				return explainText(s.Out, kind(), e, recursive)
			}
			out := json.NewEncoder(s.Out)
			out.SetIndent("", "  ")
			return out.Encode(e)
		},
	}
	cmd.Flags().BoolVar(&targets, "targets", false, "print what each framework and target can carry, as Markdown")
	cmd.Flags().BoolVar(&recursive, "recursive", false, "print the names of all fields below, not only the next ones")
	cmd.Flags().StringVarP(&output, "output", "o", output, "format: "+strings.Join(formats, " or "))
	complete(cmd, "output", formats...)
	cmd.Flags().BoolVar(&environment, "environment", false, "explain an Environment instead of a TrainingJob")
	return cmd
}

// explained is a field, as text or as JSON, and those below it.
type explained struct {
	Path     string      `json:"path"` // "" is the document
	Doc      string      `json:"doc,omitempty"`
	Type     string      `json:"type,omitempty"`
	Default  string      `json:"default,omitempty"`
	Required bool        `json:"required,omitempty"`
	Fields   []explained `json:"fields,omitempty"`
}

// explain reads a field and those below it, whatever their depth where it is recursive. Of an Environment, those parts
// that are a job's own fields are not opened then.
func explain(kind, path string, recursive bool) (explained, error) {
	of := func(f schema.Field) explained {
		return explained{Path: f.Path, Doc: f.Doc, Type: f.Type, Default: f.Default, Required: f.Required}
	}
	at, below, err := schema.Explain(kind, path)
	if err != nil {
		return explained{}, err
	}
	e := of(at)
	e.Path = path
	for _, f := range below {
		field := of(f)
		ofJobs := kind == names.KindEnvironment && (f.Path == "spec.defaults" || f.Path == "spec.overrides")
		if recursive && !ofJobs {
			if field, err = explain(kind, f.Path, true); err != nil {
				return explained{}, err
			}
		}
		e.Fields = append(e.Fields, field)
	}
	return e, nil
}

func explainText(w io.Writer, kind string, e explained, recursive bool) error {
	var out strings.Builder
	if e.Path == "" {
		fmt.Fprintf(&out, "%s of %s\n", kind, names.APIVersion)
	} else {
		describe(&out, "", e)
	}
	if len(e.Fields) > 0 {
		out.WriteString("\nFIELDS\n")
	}
	if recursive {
		outline(&out, "  ", e.Fields)
	} else {
		for _, f := range e.Fields {
			describe(&out, "  ", f)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func describe(out *strings.Builder, indent string, f explained) {
	name := f.Path
	if indent != "" {
		name = lastName(name)
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

// outline names fields and all below them, with what they may hold.
func outline(out *strings.Builder, indent string, fields []explained) {
	for _, f := range fields {
		fmt.Fprintf(out, "%s%s  %s\n", indent, lastName(f.Path), f.Type)
		outline(out, indent+"  ", f.Fields)
	}
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }
