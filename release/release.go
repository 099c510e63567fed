package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/images"
)

// linked are the variables in which tegen has the names of its companions' images.
var linked = map[string]string{
	"tegen-rendezvous": "github.com/tegen-dev/tegen/internal/names.ReleasedRendezvous",
	"tegen-scheduler":  "github.com/tegen-dev/tegen/internal/names.ReleasedScheduler",
}

// release is one in the making.
type release struct {
	options
	version, commit string            // as the first program records them
	work            string            // folder of programs
	link            map[string]string // into tegen
	pushed          []image
	programs        map[string]images.Program // by name and system
}

// makeRelease makes a release, all of it or nothing.
func (o *options) makeRelease(ctx context.Context) error {
	work, err := os.MkdirTemp("", "tegen-release-")
	if err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	r := &release{
		options: *o, work: work, version: o.tag, link: map[string]string{}, programs: map[string]images.Program{},
	}
	r.created = time.Time{}    // a release depends on the commit alone
	defer os.RemoveAll(r.work) //nolint:errcheck // temporary files
	if err := os.MkdirAll(filepath.Dir(o.dir), 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	if err := images.Replace(o.dir, func(dir string) error { return r.write(ctx, dir) }); err != nil {
		return err
	}
	o.progress.Printf("%s is tegen %s; push its images: make push-release REGISTRY=%s", o.dir, r.version, o.registry)
	return nil
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
		named, b, err := r.writeImage(ctx, i, filepath.Join(r.dir, "images"), r.link)
		if err != nil {
			return err
		}
		if err := r.check(i.Name, b.Version, b.Revision); err != nil {
			return err
		}
		r.pushed = append(r.pushed, named)
		if variable := linked[i.Name]; variable != "" {
			r.link[variable] = named.String()
		}
	}
	return nil
}

// check compares what a program records with the release. The go command records no commit outside of a clone, and
// adds +dirty to the version if files differ from the commit.
func (r *release) check(name, version, commit string) error {
	r.version, r.commit = cmp.Or(r.version, version), cmp.Or(r.commit, commit)
	if version == "" || version != r.version || commit != r.commit || strings.HasSuffix(version, "+dirty") {
		return fmt.Errorf("%s has the version %q of the commit %q, not %q of %q: release from a clone, not a "+
			"worktree, with nothing uncommitted; a release v1.2.3 needs the tags v1.2.3, rendezvous/v1.2.3 and "+
			"scheduler/v1.2.3",
			name, version, commit, r.version, r.commit)
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
	if err != nil {
		return p, err
	}
	r.programs[key] = p
	return p, r.check(name, p.Version, p.Revision)
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
