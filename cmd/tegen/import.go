package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/importer"
)

const importLong = `import reads manifests of training jobs, of tegen or of anyone else, and prints the
TrainingJobs that render to the same objects. It reads Jobs, the bare pods of the
torchelastic tutorial with their Services and etcd, ElasticJobs of TorchElastic and
of DLRover, PyTorchJobs, TrainJobs with their runtimes, JobSets, Volcano Jobs,
MXJobs, MxJobs and MPIJobs, also inside an AppWrapper; the workers of JAXJobs,
TFJobs, PaddleJobs, XGBoostJobs and HyperPodPyTorchJobs; and the claims, volumes,
PodGroups and ServiceAccounts in the same input.

What was read is compared with what the job renders, field by field. Standard
error has a line for whatever differs:

  file:line: object: field: value: verdict: why

  dropped     neither the job nor what it renders has it
  changed     the job means something else here, such as another launcher
  error       the source was wrong: it was corrected, or must be, such as ${NODES}
  refused     the source was right, but no TrainingJob may have it: correct the job
  translated  its meaning is kept in another form
  added       the job renders more than there was, such as a rendezvous
  beside      not part of the job: keep it beside
  warning     kept as it was, such as a secret in plain text, whose value no line shows
  unread      could not be read

Status, and what clusters and kubectl write into metadata for themselves, is left
out without a note. "-" reads standard input.

Exit codes: 0 when every job that was printed can be rendered, whatever was
dropped; 1 when there was none, or one must be corrected first (a line with error
or refused names the field); with --strict also when anything was dropped or changed.`

const importExample = `  tegen import job.yaml > training.yaml
  kubectl get pytorchjob resnet -o yaml | tegen import - --strict
  tegen import job.yaml | tegen render -`

func newImportCmd(s cli.Streams) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:               "import FILE...",
		Short:             "Make TrainingJobs of existing manifests",
		Long:              importLong,
		Example:           importExample,
		Args:              cli.AtLeastOne("file"),
		ValidArgsFunction: yamlFiles,
		RunE:              func(_ *cobra.Command, files []string) error { return runImport(s, files, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail when anything was dropped or changed")
	return cmd
}

func runImport(s cli.Streams, files []string, strict bool) error {
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
	if _, err := s.Out.Write(out.YAML); err != nil {
		return fmt.Errorf("writing jobs: %w", err)
	}
	for _, n := range out.Notes {
		if _, err := fmt.Fprintln(s.Err, n); err != nil {
			return fmt.Errorf("writing notes: %w", err)
		}
	}
	switch {
	case out.Jobs == 0:
		return errors.New("nothing to import: there is no training job in the input")
	case out.Invalid:
		return errors.New("a job must be corrected before it can be rendered: see the lines with error or refused " +
			"above")
	case strict && out.Lossy:
		return errors.New("something was dropped or changed: see above")
	}
	return nil
}
