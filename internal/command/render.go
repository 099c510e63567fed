package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
)

const renderLong = `render turns TrainingJobs into the Kubernetes objects that they need.

Files may hold several documents; a directory stands for the .yaml, .yml and .json
files in it and below, without kustomizations; "-" reads standard input. The
Environment of --environment is merged into every job; one among jobs is an error.
Jobs come out sorted by namespace and name, their objects in a fixed order, the
same bytes each time.

With --overlay the jobs go through a kustomization that has tegen among its
transformers, as 'kustomize build --enable-alpha-plugins --enable-exec' would do
it, but in this process. Without files, the overlay's own jobs are rendered. Other
functions that the overlay lists are programs. They run only with --enable-exec,
and functions in containers never run.

What an overlay or -o DIR renders is for git, unless a job or its Environment says
gitops: false: nothing deletes itself, and a changed Job has a new name where the
target can do it. What is printed without an overlay is for kubectl apply, unless
one says gitops: true.

With -o DIR every job gets a folder of its own: a file a concern, and a
kustomization.yaml that lists them. tegen-inventory.txt lists the objects of all
folders. With several overlays, each has such a directory below DIR, by its
name, and tegen-places.txt lists them. Only files that change are written. Files
that an earlier render of the same job wrote and this one does not are removed;
files that tegen did not write are never changed, and links in DIR are not
followed. One render at a time writes to DIR; another waits for up to ten
seconds. An interrupted render leaves DIR as it was, unless it has begun to rename
files: then it finishes. If tegen is killed while it renames, the next render of DIR
makes the remaining changes first. Until then tegen-unfinished.txt lists them, and
--check, diff, publish and gitops end with an error.

The folder of a job that is gone stays, and goes on being applied: a render of a
directory, of several files or of none names it in a note, and removes it with
--prune; the same goes for the directory of an overlay that was rendered with
others and is neither named nor there now. --check writes nothing: it prints how
DIR differs from what would be there, such folders included, and exits 1 if it
does.

A workload records the version of tegen that rendered it and a digest of its input.
If the input is the same and this version of tegen renders another workload, the
folder of the job stays as it is, and a note names the job: a change would restart
it. --upgrade renders it with this version. If the workload has no such record,
render exits 1; --upgrade renders it, --keep keeps it and records the input.

If anything is wrong, every mistake is reported, nothing is printed and no file
changes.`

const renderExample = `  tegen render job.yaml | kubectl apply -f -
  tegen render job.yaml --overlay overlays/eks
  tegen render jobs --overlay overlays/eks -o rendered/eks --prune
  tegen render jobs --overlay overlays/eks --overlay overlays/kind -o rendered
  tegen render jobs --overlay overlays/eks -o rendered/eks --check
  tegen render --overlay overlays/kind`

type renderOptions struct {
	input
	output       string
	prune, check bool

	upgrade, keep bool
}

func newRenderCmd(s cli.Streams, set generators.Set) *cobra.Command {
	opts := renderOptions{input: input{generators: set}}
	cmd := &cobra.Command{
		Use:               "render [FILE|DIR...]",
		SuggestFor:        []string{"build", "template", "generate"},
		Short:             "Render jobs into Kubernetes manifests",
		Long:              renderLong,
		Example:           renderExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			if err := opts.validate(files); err != nil {
				return err
			}
			opts.files = files
			return runRender(s, files, opts)
		},
	}
	addInputFlags(cmd, &opts.input, "; several with -o")
	cmd.Flags().StringVarP(&opts.output, "output", "o", "-", "directory to write to, or - for standard output")
	cmd.Flags().BoolVar(&opts.prune, "prune", false, "remove the folders of jobs that are gone from the directory")
	cmd.Flags().BoolVar(&opts.check, "check", false,
		"write nothing: print how the directory differs, and exit 1 if it does")
	cmd.Flags().BoolVar(&opts.upgrade, "upgrade", false,
		"render with this version the jobs that another version of tegen rendered, which restarts them")
	cmd.Flags().BoolVar(&opts.keep, "keep", false,
		"keep workloads that have no record of their input, and record the present one")
	completeBy(cmd, "output", directories)
	return cmd
}

// checkDirectory refuses names that are meant otherwise: an unset variable of a script, or a format, as -o takes in
// kubectl and in plan.
func checkDirectory(dir string) error {
	switch dir {
	case "":
		return cli.Usagef("-o needs the name of a directory, or - for standard output")
	case "json", "yaml", "yml", "text", "wide", "name":
		return cli.Usagef("%q is a format, and -o of render is a directory: manifests are YAML always; ./%s is a "+
			"directory of that name", dir, dir)
	}
	return nil
}

func runRender(s cli.Streams, files []string, opts renderOptions) error {
	outs, err := build(s, opts.input, purpose{git: opts.toTree(), yamlOnly: true})
	if err != nil {
		return err
	}
	if err := refuseUnfilled(outs); err != nil {
		return err
	}
	if err := noteDelivery(s, outs, opts.toTree()); err != nil {
		return fmt.Errorf("writing a note: %w", err)
	}
	if !opts.toTree() {
		return stream(s.Out, outs[0])
	}
	if err := noteSecrets(s, outs); err != nil {
		return err
	}
	all := allJobs(files)
	places := opts.places(outs, all)
	if opts.check {
		return opts.checkTrees(s, places, all)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return opts.writeTrees(ctx, s, places, all)
}

// stream writes all or nothing: every bundle is complete before the first byte is written.
func stream(w io.Writer, out *krm.Output) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	if err := out.Write(buffered); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}
