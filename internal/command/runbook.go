package command

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/gitops"
	"github.com/tegen-dev/tegen/internal/oci"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/runbook"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema"
)

const runbookLong = `runbook prints the commands by which one job is run, as Markdown: cluster, companions, what must
exist, commit, watch, logs, scale, a disruption, suspension, removal. They have the job's own names,
namespace and selectors, and those of the node group that its workers run on; what does not apply to
the job is left out.

The cluster is that of the overlay's cluster.yaml, a ClusterConfig of eksctl or a Cluster of
kind. With --with argocd or flux, jobs are rendered to the folder --tree of a git repository
and committed; with kubectl they are applied. With --repo oci://..., which is given to 'tegen
publish' and 'tegen gitops', the folder is published there after each commit. Names may change
with the job: make its runbook anew then. Several jobs have a runbook each. runbook talks to no
cluster and runs nothing.`

const runbookExample = `  tegen runbook jobs/resnet.yaml --overlay overlays/eks --with flux
  tegen runbook jobs/resnet.yaml --overlay overlays/kind > RUNBOOK.md
  tegen runbook job.yaml --overlay overlays/eks --with argocd --tree deploy/eks
  tegen runbook jobs/resnet.yaml --with flux --repo oci://registry.example/team/jobs:eks`

type runbookOptions struct {
	input            // with one overlay at most
	tree, with, repo string
}

func newRunbookCmd(s cli.Streams, set generators.Set) *cobra.Command {
	opts := runbookOptions{input: input{generators: set}}
	cmd := &cobra.Command{
		Use:               "runbook [FILE|DIR...]",
		Short:             "Print the commands that run a job, from its cluster to its removal",
		Long:              runbookLong,
		Example:           runbookExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			if err := opts.check(files); err != nil {
				return err
			}
			opts.files = files
			return runRunbook(s, files, opts)
		},
	}
	addInputFlags(cmd, &opts.input, "")
	addOptional(cmd, &opts.tree, "tree", "directory", "folder in git that jobs are rendered to (default: rendered, "+
		"with the name of the overlay)")
	addOptional(cmd, &opts.repo, "repo", "repository", "address of the git repository, or "+
		"oci://REGISTRY/REPOSITORY:TAG to publish the folder to (default: the variable REPO of the shell)")
	cmd.Flags().StringVar(&opts.with, "with", runbook.Kubectl, "what applies the job: "+
		strings.Join(runbook.Ways, ", "))
	completeBy(cmd, "tree", directories)
	complete(cmd, "with", runbook.Ways...)
	return cmd
}

// check refuses what no command of a runbook could say, and sets what follows from the overlay.
func (o *runbookOptions) check(files []string) error {
	switch {
	case !slices.Contains(runbook.Ways, o.with):
		return cli.Usagef("unknown way %q: --with must be one of %s%s", o.with, strings.Join(runbook.Ways, ", "),
			spelling.Suggest(o.with, runbook.Ways))
	case o.tree != "" && o.with == runbook.Kubectl:
		return cli.Usagef("--tree is the folder that Argo CD or Flux reads: add --with argocd or --with flux")
	case slices.Contains(append(files, o.environment), "-"):
		return cli.Usagef("a runbook says where its job is: name a file in the place of -")
	}
	if err := o.checkRepo(); err != nil {
		return err
	}
	if o.tree == "" {
		o.tree = "rendered"
		for _, overlay := range o.overlays {
			o.tree = path.Join(o.tree, placeName(overlay))
		}
	}
	for _, name := range slices.Concat(o.overlays, []string{o.tree}, files) {
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return cli.Usagef("a runbook cannot say the name %q: rename it", name)
		}
	}
	return nil
}

// checkRepo refuses what 'tegen gitops' or 'tegen publish' would.
func (o *runbookOptions) checkRepo() error {
	if o.repo == "" {
		return nil
	}
	if o.with == runbook.Kubectl {
		return cli.Usagef("--repo is where Argo CD or Flux finds jobs: add --with argocd or --with flux")
	}
	source := gitops.Source{URL: o.repo}
	if err := errors.Join(source.Check()...); err != nil {
		return cli.Usagef("%w", err)
	}
	if !source.IsOCI() {
		return nil
	}
	to, err := oci.ParseReference(o.repo, false)
	if err == nil && to.IsDigest() {
		err = errors.New("a digest follows from what is published: give a tag")
	}
	if err != nil {
		return cli.Usagef("--repo: %w", err)
	}
	return nil
}

func runRunbook(s cli.Streams, files []string, opts runbookOptions) error {
	outs, err := build(s, opts.input, purpose{git: opts.with != runbook.Kubectl})
	if err != nil {
		return err
	}
	if err := printNotes(s.Err, unfilled(outs, finding.Note)); err != nil {
		return err
	}
	named, err := filesBelow(files)
	if err != nil {
		return err
	}
	to := runbook.Options{
		Files: files, Environment: opts.environment, Exec: opts.exec, Tree: opts.tree, With: opts.with, Repo: opts.repo,
	}
	if (gitops.Source{URL: opts.repo}).IsOCI() {
		to.Repo, to.OCI = "", opts.repo
	}
	to.All, to.IsAll = opts.allInput(files)
	for _, overlay := range opts.overlays {
		to.Overlay = overlay
		if to.Cluster, err = clusterOf(overlay); err != nil {
			return err
		}
	}
	var text []byte
	for _, out := range outs {
		objects, err := out.Objects()
		if err != nil {
			return err
		}
		for i := range objects {
			if len(text) > 0 {
				text = append(text, '\n')
			}
			to.Alone = alone(named, out.Bundles, i)
			text = append(text, runbook.Markdown(out.Bundles[i].Job, objects[i], to)...)
		}
	}
	if _, err := s.Out.Write(text); err != nil {
		return fmt.Errorf("writing the runbook: %w", err)
	}
	return nil
}

// allInput are the directories from which all jobs of the tree are rendered, those of files that are named among them.
// One that holds the tree or the overlay too cannot be rendered as a whole.
func (o *runbookOptions) allInput(files []string) (all []string, ok bool) {
	for _, name := range files {
		if !isDirectory(name) {
			name = filepath.Dir(name)
		}
		for _, other := range append([]string{o.tree}, o.overlays...) {
			if below(name, other) {
				return nil, false
			}
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all, true
}

// alone is the file of a job, where it is one of the files that were named and no other job is in it.
func alone(files []string, bundles []render.Bundle, i int) string {
	source := runbook.Source(bundles[i].Job)
	if !slices.Contains(files, source) {
		return ""
	}
	for j := range bundles {
		if i != j && runbook.Source(bundles[j].Job) == source {
			return ""
		}
	}
	return source
}

// clusterOf reads the file of an overlay that makes the cluster, nil where there is none.
func clusterOf(overlay string) (*runbook.Cluster, error) {
	name := filepath.Join(overlay, "cluster.yaml")
	text, err := readFile(name, schema.MaxFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case len(text) > schema.MaxFile:
		return nil, fmt.Errorf("reading %s: it has more than %d MiB", name, schema.MaxFile>>20)
	}
	return runbook.ReadCluster(name, text)
}
