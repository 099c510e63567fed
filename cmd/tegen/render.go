package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/tree"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

const renderLong = `render turns TrainingJobs into the Kubernetes objects that they need.

Files may hold several documents; "-" reads standard input. An Environment in one
of them is merged into every job. Jobs come out sorted by namespace and name,
their objects in a fixed order, the same bytes each time.

With --overlay the jobs go through a kustomization that has tegen among its
transformers, as 'kustomize build --enable-alpha-plugins --enable-exec' would do
it, but in this process. Without files, the overlay's own jobs are rendered.

What an overlay or -o DIR renders is for git, unless a job or its Environment says
gitops: false: nothing deletes itself, and a changed Job has a new name where the
target can do it. What is printed without an overlay is for kubectl apply, unless
one says gitops: true.

With -o DIR every job gets a folder of its own: a file a concern, and a
kustomization.yaml that lists them. Files that an earlier render of the same job
wrote and this one does not are removed; files that tegen did not write are never
changed, and links in DIR are not followed. The folder of a removed job stays
until you delete it; a render of several files, or of none, prints a note that
names such folders. One render at a time writes to DIR; another waits for up to
ten seconds. A render that is interrupted restores what it changed.

If anything is wrong, every mistake is reported, nothing is printed and no file
changes.`

const renderExample = `  tegen render job.yaml | kubectl apply -f -
  tegen render job.yaml --overlay overlays/eks
  tegen render jobs/*.yaml --overlay overlays/eks -o rendered/eks
  tegen render --overlay overlays/kind`

type renderOptions struct {
	overlay, output string
}

func newRenderCmd(s cli.Streams) *cobra.Command {
	var opts renderOptions
	cmd := &cobra.Command{
		Use:               "render [FILE...]",
		Short:             "Render jobs into Kubernetes manifests",
		Long:              renderLong,
		Example:           renderExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			if err := checkDirectory(opts.output); err != nil {
				return err
			}
			return runRender(s, files, opts)
		},
	}
	addOverlayFlag(cmd, &opts.overlay)
	cmd.Flags().StringVarP(&opts.output, "output", "o", "-", "directory to write to, or - for standard output")
	if err := cmd.MarkFlagDirname("output"); err != nil {
		panic(err) // the flag is defined above
	}
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

func addOverlayFlag(cmd *cobra.Command, overlay *string) {
	addOptional(cmd, overlay, "overlay", "directory", "directory of a kustomization with tegen among its transformers")
	if err := cmd.MarkFlagDirname("overlay"); err != nil {
		panic(err) // the flag is defined above
	}
}

// addOptional adds a flag that may be left out, but not be empty, as it is where a script's variable is unset: the
// command would do something else and succeed.
func addOptional(cmd *cobra.Command, value *string, flag, what, usage string) {
	cmd.Flags().StringVar(value, flag, "", usage)
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(flag) && *value == "" {
			return cli.Usagef("--%s needs the name of a %s", flag, what)
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

func runRender(s cli.Streams, files []string, opts renderOptions) error {
	toTree := opts.output != "-"
	out, err := build(s, files, opts.overlay, toTree)
	if err != nil {
		return err
	}
	if err := noteDelivery(s, out.Bundles, toTree); err != nil {
		return fmt.Errorf("writing a note: %w", err)
	}
	if toTree {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := tree.Write(ctx, opts.output, out.Bundles, out.Rest); err != nil {
			return err
		}
		if len(files) == 1 { // a tree that is rendered file by file needs no note about the others
			return nil
		}
		return noteOthers(s, opts.output, out.Bundles)
	}
	return stream(s.Out, out)
}

// noteOthers names the folders of jobs that were not rendered this time: a removed job would go on being applied.
func noteOthers(s cli.Streams, dir string, bundles []render.Bundle) error {
	others, err := tree.Others(dir, bundles)
	if err != nil {
		return fmt.Errorf("reading %s: %w", printable(dir), err)
	}
	if len(others) == 0 {
		return nil
	}
	_, err = fmt.Fprintf(s.Err, "%s: note: it also holds what was rendered of %s: remove the folder of a job that is "+
		"gone, or it goes on being applied\n", printable(dir), few(others))
	return err
}

// build renders files, through an overlay where one is named. git says that the result is for git, as an overlay's
// always is.
func build(s cli.Streams, files []string, overlay string, git bool) (*krm.Output, error) {
	if len(files) == 0 && overlay == "" {
		return nil, cli.Usagef("no file given, and no --overlay with jobs of its own")
	}
	sources, err := read(s.In, files, schema.MaxFile) // Load says so where there is more
	if err != nil {
		return nil, err
	}
	out := &krm.Output{}
	if overlay != "" {
		out, err = krm.Overlay(overlay, sources)
	} else {
		out.Bundles, err = plain(sources, git)
	}
	// an empty render would have a reconciler delete everything
	if err == nil && len(out.Bundles) == 0 && len(out.Rest) == 0 {
		err = errors.New("nothing to render: there is no TrainingJob in the input")
	}
	if err != nil {
		return nil, err
	}
	for _, note := range out.Notes {
		if _, err := fmt.Fprintln(s.Err, note); err != nil {
			return nil, fmt.Errorf("writing a note: %w", err)
		}
	}
	for _, b := range out.Bundles {
		for _, note := range b.Job.Notes() {
			if _, err := fmt.Fprintf(s.Err, "%s: note: %s\n", b.Job.Position(), note); err != nil {
				return nil, fmt.Errorf("writing a note: %w", err)
			}
		}
	}
	return out, nil
}

func plain(sources []schema.Source, git bool) ([]render.Bundle, error) {
	load := schema.Load
	if git {
		load = schema.LoadForGit
	}
	jobs, err := load(sources)
	if err != nil {
		return nil, err
	}
	return render.Jobs(jobs, nil)
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

// read loads the named files, "-" being standard input. No more than limit bytes of each are read, and one more to see
// that there is more.
func read(stdin io.Reader, files []string, limit int64) ([]schema.Source, error) {
	sources := make([]schema.Source, len(files))
	for i, name := range files {
		var data []byte
		var err error
		if name == "-" {
			name = "<stdin>"
			data, err = io.ReadAll(io.LimitReader(stdin, limit+1))
		} else {
			data, err = readFile(name, limit+1)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", printable(name), err)
		}
		sources[i] = schema.Source{Name: printable(name), Data: yamldoc.JoinSurrogates(data)}
	}
	return sources, nil
}

func readFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("it is a directory: name the files in it")
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
