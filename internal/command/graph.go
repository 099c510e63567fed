package command

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/graph"
	"github.com/tegen-dev/tegen/internal/spelling"
)

const graphLong = `graph draws what render makes of a job: its objects, and every reference among them
that check follows: what uses a volume, a Secret or an account, which address is dialled
at which port, which Service names pods, which selector selects them, who is of which
gang. A dashed box is not rendered: it must exist, or its controller makes it.

dot is for Graphviz; mermaid is what GitHub and GitLab draw of a block of that name in
Markdown; svg is a picture, for pages of either colour. Several jobs are drawn in one.`

const graphExample = `  tegen graph job.yaml -o svg > job.svg
  tegen graph jobs/*.yaml --overlay overlays/eks -o mermaid
  tegen graph job.yaml | dot -Tpdf > job.pdf`

func newGraphCmd(s cli.Streams, set generators.Set) *cobra.Command {
	in := input{generators: set}
	formats := map[string]func(*graph.Graph) string{
		"dot": (*graph.Graph).DOT, "mermaid": (*graph.Graph).Mermaid, "svg": (*graph.Graph).SVG,
	}
	names := []string{"dot", "mermaid", "svg"}
	output := names[0]
	cmd := &cobra.Command{
		Use:               "graph [FILE|DIR...]",
		SuggestFor:        []string{"draw"},
		Short:             "Draw a job's objects and what refers to what",
		Long:              graphLong,
		Example:           graphExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			draw := formats[output]
			if draw == nil {
				return cli.Usagef("unknown output %q: -o of graph is a format, one of %s%s", output,
					strings.Join(names, ", "), spelling.Suggest(output, names))
			}
			in.files = files
			return runGraph(s, in, draw)
		},
	}
	addInputFlags(cmd, &in, "")
	cmd.Flags().StringVarP(&output, "output", "o", output, "format: "+strings.Join(names, ", "))
	complete(cmd, "output", names...)
	return cmd
}

func runGraph(s cli.Streams, in input, draw func(*graph.Graph) string) error {
	outs, err := build(s, in, purpose{})
	if err != nil {
		return err
	}
	all, err := outs[0].Objects()
	if err != nil {
		return err
	}
	var titles []string
	for _, b := range outs[0].Bundles {
		titles = append(titles, b.Job.Metadata.Name)
	}
	if titles == nil {
		return errors.New("nothing to draw: no TrainingJob is rendered")
	}
	var objects []runtime.Object
	for _, concern := range slices.Concat(all...) {
		objects = append(objects, concern.Objects...)
	}
	g, err := graph.Of(strings.Join(titles, ", "), objects)
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, draw(g))
	return err
}
