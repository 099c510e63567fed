package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/oci"
	"github.com/tegen-dev/tegen/internal/origin"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/tree"
	"github.com/tegen-dev/tegen/schema"
)

const publishLong = `publish pushes a directory that 'tegen render -o' wrote to a registry, as one
artifact that both Flux's OCIRepository and an OCI source of Argo CD take. It
prints registry/repository:tag@sha256:..., by which the artifact can be pinned and
signed. Of all commands it is the only one that uses the network.

The same files and the same commit give the same digest, whoever publishes them,
whenever and where, with one release of tegen. Annotations say of which repository
and commit the files come, as Flux writes them: git is asked for both, or --source
and --revision say them. A provenance statement (in-toto, SLSA 1.0) with the
digest of every file is attached; it is not signed.

Nothing is published of a directory that holds a file which tegen did not write,
a folder that is not as one render left it, a reference that does not resolve, a
Secret with values, or changes that are not committed, nor where git does not
track the file of a job.

--verify pushes nothing: it compares what the registry has with what would be
published, prints each difference and exits with 1 if there is one. --dry-run
neither pushes nor asks anybody.

Credentials are those of 'docker login' or 'podman login'.`

const publishExample = `  tegen publish oci://registry.example/team/jobs:eks rendered/eks
  tegen publish oci://registry.example/team/jobs:eks rendered/eks --verify
  tegen publish oci://localhost:5000/jobs:kind rendered/kind --plain-http
  cosign sign "$(tegen publish oci://registry.example/team/jobs:eks rendered/eks)"`

type publishOptions struct {
	source, revision          string
	policies                  []string
	plainHTTP, verify, dryRun bool
}

func newPublishCmd(s cli.Streams) *cobra.Command {
	var opts publishOptions
	cmd := &cobra.Command{
		Use:        "publish oci://REGISTRY/REPOSITORY:TAG DIRECTORY",
		SuggestFor: []string{"push"},
		Short:      "Push a rendered directory to a registry, for Flux and Argo CD",
		Long:       publishLong,
		Example:    publishExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("publish takes where to publish, and the directory to publish: " +
					"oci://registry.example/team/jobs:eks rendered/eks")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"oci://"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			case 1:
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			to, err := opts.check(args[0])
			if err != nil {
				return err
			}
			return runPublish(s, to, args[1], opts)
		},
	}
	addPolicyFlag(cmd, &opts.policies)
	addOptional(cmd, &opts.source, "source", "URL", "URL of the repository that the files come from, in place of "+
		"that of git's remote 'origin'")
	addOptional(cmd, &opts.revision, "revision", "revision", "BRANCH@sha1:COMMIT of that repository, in place of "+
		"what git has checked out")
	flags := cmd.Flags()
	flags.BoolVar(&opts.plainHTTP, "plain-http", false, "the registry has no TLS; its credentials are sent as they are")
	flags.BoolVar(&opts.verify, "verify", false, "compare what is published with the directory, and push nothing")
	flags.BoolVar(&opts.dryRun, "dry-run", false, "print what would be pushed, and use no network")
	return cmd
}

// check returns where to publish, or what is wrong with the command line.
func (o *publishOptions) check(target string) (oci.Reference, error) {
	if o.verify && o.dryRun {
		return oci.Reference{}, cli.Usagef("--verify asks a registry and --dry-run nobody: give one of them")
	}
	to, err := oci.ParseReference(target, o.plainHTTP)
	if err != nil {
		return to, cli.Usagef("where to publish: %w", err)
	}
	if to.IsDigest() && !o.verify {
		return to, cli.Usagef("where to publish: a digest follows from what is published: give a tag; --verify takes " +
			"digests")
	}
	if o.source != "" {
		if err := origin.CheckSource(o.source); err != nil {
			return to, cli.Usagef("--source: %w", err)
		}
	}
	if o.revision != "" {
		if err := origin.CheckRevision(o.revision); err != nil {
			return to, cli.Usagef("--revision: %w", err)
		}
	}
	return to, nil
}

func runPublish(s cli.Streams, to oci.Reference, dir string, opts publishOptions) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rules, err := objectPolicy(opts.policies, "publish")
	if err != nil {
		return err
	}
	files, err := readTree(dir, rules)
	if err != nil {
		return err
	}
	from, err := originOf(ctx, dir, opts)
	if err != nil {
		return err
	}
	artifact, err := oci.New(files, from)
	if err != nil {
		return err
	}
	version := cli.BuildVersion()
	provenance, err := oci.NewProvenance(artifact, to, version)
	if err != nil {
		return err
	}
	client := oci.NewClient("tegen/"+version, opts.plainHTTP)
	switch {
	case opts.dryRun:
		err = describePush(s, files, from, provenance)
	case opts.verify:
		err = verify(ctx, client, to, artifact, provenance)
	default:
		if err = client.Push(ctx, to, artifact, provenance); err != nil {
			err = oneLine{err} // it has the registry's own words
		}
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.Out, to.At(artifact.Digest())); err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

// readTree returns the files of a rendered tree whose objects have been checked, also against a policy.
func readTree(dir string, rules *policy.Policy) ([]oci.File, error) {
	found, err := tree.Read(dir, oci.MaxBytes)
	if err != nil {
		return nil, err
	}
	var (
		files   []oci.File
		objects []runtime.Object
	)
	for _, f := range found {
		files = append(files, oci.File{Path: f.Path, Content: f.Content})
		if filepath.Base(f.Path) == konfig.DefaultKustomizationFileName() {
			continue
		}
		read, err := manifest.Read(filepath.Join(dir, f.Path), f.Content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, read...)
	}
	return files, errors.Join(render.Judge("", objects, rules), unrendered(objects), secrets(objects))
}

// secrets are those whose values everybody could read who can read the artifact.
func secrets(objects []runtime.Object) error {
	var errs []error
	for _, o := range objects {
		if id, filled := manifest.FilledSecret(o); filled {
			errs = append(errs, fmt.Errorf("the Secret %s has values, which everybody who reads the artifact would "+
				"know: make it in the cluster, and name it in tegen.dev/expects, or have an operator fetch it", id))
		}
	}
	return errors.Join(errs...)
}

// originOf asks git for what flags do not say.
func originOf(ctx context.Context, dir string, opts publishOptions) (origin.Origin, error) {
	from := origin.Origin{Source: opts.source, Revision: opts.revision}
	var errs []error
	for _, part := range []struct {
		value *string
		flag  string
		ask   func(context.Context, string) (string, error)
	}{{&from.Source, "--source", origin.Source}, {&from.Revision, "--revision", committed}} {
		if *part.value != "" {
			continue
		}
		value, err := part.ask(ctx, dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("asking git where %s comes from: %w; or give %s", printable(dir), err,
				part.flag))
		}
		*part.value = value
	}
	return from, errors.Join(errs...)
}

// committed is the revision of a directory, unless one of its jobs is in a file of the repository that no clone has.
func committed(ctx context.Context, dir string) (string, error) {
	revision, err := origin.Revision(ctx, dir)
	if err != nil {
		return "", err
	}
	files, err := origin.Untracked(ctx, dir)
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if job := jobOf(name, dir); job != "" {
			return "", fmt.Errorf("its job %s is in %s, which git does not track: commit that, or have .gitignore "+
				"name it", printable(job), printable(name))
		}
	}
	return revision, nil
}

// jobOf is a job in a file that has a folder in a rendered directory; "" where there is none. What cannot be read was
// not rendered either.
func jobOf(file, dir string) string {
	text, err := readFile(file, schema.MaxFile)
	if err != nil || !bytes.Contains(text, []byte(names.KindTrainingJob)) {
		return ""
	}
	documents, _ := manifest.ReadLoosely(file, text)
	for _, d := range documents {
		meta, _ := d.Object["metadata"].(map[string]any)
		job, _ := meta["name"].(string)
		if d.Object["kind"] == names.KindTrainingJob && job != "" && isDirectory(filepath.Join(dir, job)) {
			return job
		}
	}
	return ""
}

// describePush says what would be pushed.
func describePush(s cli.Streams, files []oci.File, from origin.Origin, p *oci.Provenance) error {
	var text strings.Builder
	fmt.Fprintf(&text, "source      %s\nrevision    %s\nprovenance  %s\n", from.Source, from.Revision, p.Digest())
	for _, f := range files {
		fmt.Fprintf(&text, "file        %s\n", f.Path)
	}
	if _, err := fmt.Fprint(s.Err, text.String()); err != nil {
		return fmt.Errorf("writing what would be pushed: %w", err)
	}
	return nil
}

func verify(ctx context.Context, client *oci.Client, at oci.Reference, a *oci.Artifact, p *oci.Provenance) error {
	differences, err := client.Verify(ctx, at, a, p)
	if err != nil {
		return oneLine{err}
	}
	var errs []error
	for _, d := range differences {
		errs = append(errs, oneLine{fmt.Errorf("%s: %s", at, d)})
	}
	return errors.Join(errs...)
}
