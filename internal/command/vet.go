package command

import (
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
)

const vetLong = `vet does what render does, but prints only mistakes: all of them, one line each,
sorted.

  file:line:col: path: message

Jobs without a mistake may have notes, which render prints on standard error too:

  file:line:col: note: text

A note that more than three jobs have in common is printed for the first of them.
A job that a patch of the overlay renamed has no line. "-" reads standard input,
and a directory stands for the .yaml, .yml and .json files in it and below; a link
out of it is an error. The Environment of --environment is merged into every job
first; with --overlay the jobs are checked as that overlay renders them, with its
own. A note names files of jobs that tegen renders and kustomize does not, or the
other way round. With several overlays, what only some of them have to say ends
in their names.` + findingsHelp

const vetExample = `  tegen vet jobs
  tegen vet jobs/*.yaml --overlay overlays/eks --overlay overlays/kind
  tegen vet jobs -o json
  tegen vet jobs -o github
  tegen vet jobs -o sarif > tegen.sarif`

func newVetCmd(s cli.Streams, set generators.Set) *cobra.Command {
	in := input{generators: set}
	var output string
	cmd := &cobra.Command{
		Use:               "vet [FILE|DIR...]",
		SuggestFor:        []string{"validate", "lint"},
		Short:             "Report every mistake in job files",
		Long:              vetLong,
		Example:           vetExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			in.files = files
			outs, notes, err := built(s.In, in, purpose{yamlOnly: true})
			if err == nil {
				err = refuseUnfilled(outs)
			}
			return report(s, finding.Report{Command: "vet", Findings: notes}, output, err)
		},
	}
	addInputFlags(cmd, &in, "; there may be several")
	addFindings(cmd, &output)
	return cmd
}
