package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/importer"
)

const importLong = `import reads manifests of training jobs, of tegen or of anyone else, and prints the
TrainingJobs that render to the same objects. It reads Jobs, the bare pods of the
torchelastic tutorial with their Services and etcd, ElasticJobs of TorchElastic and
of DLRover, PyTorchJobs, TrainJobs with their runtimes, JobSets, Volcano Jobs,
MXJobs, MxJobs, MPIJobs and JAXJobs, also inside an AppWrapper; the workers of
PaddleJobs, XGBoostJobs, HyperPodPyTorchJobs and of TFJobs of one pod; and the
claims, volumes, PodGroups and ServiceAccounts in the same input.

What was read is compared with what the job renders, field by field. Standard
error has a line for whatever differs:

  file:line: object: field: value: verdict: why

  dropped     neither the job nor what it renders has it
  changed     the job means something else here, such as another launcher, or
              names pods of the source that it calls otherwise
  error       the source was wrong: it was corrected, or must be, such as ${NODES}
  refused     the source was right, but no TrainingJob may have it: correct the job;
              of a TrainJob that Trainer runs otherwise, none is printed
  translated  its meaning is kept in another form
  added       the job renders more than there was, such as a rendezvous
  beside      not part of the job: keep it beside
  warning     kept as it was, such as a secret in plain text, whose value no line shows
  unread      could not be read

Status, and what clusters and kubectl write into metadata for themselves, is left
out without a note. "-" reads standard input.

Exit codes: 0 when every job that was printed can be rendered, whatever was
dropped; 1 when there was none, or one must be corrected first (a line with error
or refused names the field), or a key of the input has two values; with --strict also
when anything was dropped or changed.

In place of text, -o json prints one document with the notes as findings and the
jobs as its text "jobs"; sarif and github are findings alone. docs/findings.md
describes them.`

const importExample = `  tegen import pytorchjob.yaml > training.yaml
  kubectl get pytorchjob resnet -o yaml | tegen import - --strict
  tegen import pytorchjob.yaml | tegen render -
  tegen import pytorchjob.yaml -o json | jq -r .jobs`

func newImportCmd(s cli.Streams) *cobra.Command {
	var strict bool
	var output string
	cmd := &cobra.Command{
		Use:               "import FILE...",
		SuggestFor:        []string{"convert"},
		Short:             "Make TrainingJobs of existing manifests",
		Long:              importLong,
		Example:           importExample,
		Args:              cli.AtLeastOne("file"),
		ValidArgsFunction: manifests,
		RunE:              func(_ *cobra.Command, files []string) error { return runImport(s, files, strict, output) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail when anything was dropped or changed")
	addFindings(cmd, &output)
	return cmd
}

func runImport(s cli.Streams, files []string, strict bool, output string) error {
	sources, err := read(s.In, files, maxManifests)
	if err != nil {
		return err
	}
	for _, src := range sources {
		if len(src.Data) > maxManifests {
			return fmt.Errorf("reading %s: it has more than %d MiB: import it in parts", src.Name, maxManifests>>20)
		}
	}
	out := importer.Jobs(sources)
	r := finding.Report{Command: "import", Jobs: string(out.YAML)}
	for _, n := range out.Notes {
		r.Findings = append(r.Findings, n.Finding())
	}
	if output == "text" {
		if _, err := s.Out.Write(out.YAML); err != nil {
			return fmt.Errorf("writing jobs: %w", err)
		}
	}
	return report(s, r, output, importError(out, strict))
}

func importError(out importer.Result, strict bool) error {
	isInternal := func(n importer.Note) bool { return finding.IsInternal(n.Why) }
	switch {
	case slices.ContainsFunc(out.Notes, isInternal):
		return finding.List{{
			Rule: finding.InternalRule, Level: finding.Error, Message: "a fault of tegen, which the lines above report",
		}}
	case out.Invalid:
		return errors.New("a job or its manifest must be corrected: see the lines with error or refused " +
			"above")
	case out.Jobs == 0:
		return errors.New("nothing to import: there is no training job in the input")
	case strict && out.Lossy:
		return errors.New("something was dropped or changed: see above")
	}
	return nil
}
