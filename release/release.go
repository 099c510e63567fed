package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/internal/origin"
)

// linked are the variables in which tegen has the names of its companions' images.
var linked = map[string]string{
	"tegen-rendezvous": "github.com/tegen-dev/tegen/internal/names.ReleasedRendezvous",
	"tegen-scheduler":  "github.com/tegen-dev/tegen/internal/names.ReleasedScheduler",
}

// modules are the folders of the repository's modules.
func modules() []string { return []string{"", "rendezvous", "scheduler"} }

// release is one in the making.
type release struct {
	options
	commit, version string
	work            string            // programs, while it is made
	link            map[string]string // what is linked into tegen
	pushed          []image
	programs        map[string]images.Program // by name and system
}

// makeRelease makes a release, all of it or nothing.
func (o *options) makeRelease(ctx context.Context) error {
	commit, err := o.checkCommit(ctx)
	if err != nil {
		return err
	}
	r := &release{
		options: *o, commit: commit, version: o.tag, link: map[string]string{}, programs: map[string]images.Program{},
	}
	if r.work, err = os.MkdirTemp("", "tegen-release-"); err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	defer os.RemoveAll(r.work) //nolint:errcheck // temporary files
	if err := os.MkdirAll(filepath.Dir(o.dir), 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	if err := images.Replace(o.dir, func(dir string) error { return r.write(ctx, dir) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.stdout, "%s is tegen %s; push its images: make push-release REGISTRY=%s\n", o.dir, r.version,
		o.registry)
	return err
}

// checkCommit returns the commit that everything is made of. Files must not differ from it, it must have the tag of the
// release, and the go command must be able to record it.
func (o *options) checkCommit(ctx context.Context) (string, error) {
	if at, err := os.Stat(filepath.Join(o.root, ".git")); err != nil || !at.IsDir() {
		return "", fmt.Errorf("%s is no clone, and the go command records no commit of a worktree: git clone %s, and "+
			"release there", o.root, o.root)
	}
	revision, err := origin.Revision(ctx, o.root)
	if err != nil {
		return "", fmt.Errorf("reading the commit of the release: %w", err)
	}
	tags, err := o.git(ctx, "tag", "--points-at=HEAD")
	if err != nil {
		return "", err
	}
	for _, module := range modules() { // a module below the repository's root has tags with its folder
		tag := path.Join(module, o.tag)
		if o.tag != "" && !slices.Contains(strings.Fields(tags), tag) {
			return "", fmt.Errorf("the commit has no tag %s: git tag %s, or leave the version out for a snapshot", tag, tag)
		}
	}
	return origin.Origin{Revision: revision}.Commit(), nil
}

// git runs a command that reads.
func (o *options) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", o.root}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return images.Output(cmd)
}

// write makes the parts, each of which may need those before.
func (r *release) write(ctx context.Context, dir string) error {
	r.dir = dir
	for _, part := range []func(context.Context) error{
		r.writeImages, r.writeArchives, r.writeManifests, r.writeNotes, r.writeProvenance, r.writeChecksums,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeImages builds the images of tegen's companions before tegen's, which names them.
func (r *release) writeImages(ctx context.Context) error {
	for _, i := range r.images {
		named, err := r.writeImage(ctx, i, filepath.Join(r.dir, "images"), r.link)
		if err != nil {
			return err
		}
		if r.version == "" {
			r.version = named.version
		}
		if named.version != r.version {
			return fmt.Errorf("the program in the image %s has the version %q, not %s", i.Name, named.version, r.version)
		}
		r.pushed = append(r.pushed, named)
		if variable := linked[i.Name]; variable != "" {
			r.link[variable] = named.String()
		}
	}
	return nil
}

// build compiles a program once.
func (r *release) build(ctx context.Context, name string, system images.System) (images.Program, error) {
	key := name + "-" + system.OS + "-" + system.Arch
	if p, built := r.programs[key]; built {
		return p, nil
	}
	t := images.Target{Root: r.root, Name: name, System: system}
	if name == "tegen" {
		t.Link = r.link
	}
	p, err := t.Build(ctx, filepath.Join(r.work, key))
	if err == nil && (p.Revision != r.commit || p.Version != r.version) {
		err = fmt.Errorf("%s has the version %q of the commit %q, not %s of %s", name, p.Version, p.Revision, r.version,
			r.commit)
	}
	r.programs[key] = p
	return p, err
}

// call returns what a program of the release prints on this machine.
func (r *release) call(ctx context.Context, name string, args ...string) (string, error) {
	p, err := r.build(ctx, name, images.System{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if err != nil {
		return "", err
	}
	return images.Output(exec.CommandContext(ctx, p.File, args...))
}

// writeFile writes a file of the release.
func (r *release) writeFile(name, content string) error {
	return os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644) //nolint:gosec // a release is public
}
