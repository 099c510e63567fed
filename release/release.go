package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/program"
)

// platform is what a program is compiled for.
type platform struct{ system, arch string }

func (p platform) String() string { return p.system + "/" + p.arch }

// options say what is released.
type options struct {
	root      string // of the repository
	out       string
	version   string // "": what the programs record
	registry  string
	platforms []platform
	images    []images.Image
}

// programs are those of the archives. tegen-scheduler runs in a cluster, from its image.
func programs() []string { return []string{"tegen", "tegen-rendezvous"} }

// linked are the variables in which tegen has the names of its companions' images.
var linked = map[string]string{
	"tegen-rendezvous": "github.com/tegen-dev/tegen/internal/names.ReleasedRendezvous",
	"tegen-scheduler":  "github.com/tegen-dev/tegen/internal/names.ReleasedScheduler",
}

// release is one in the making.
type release struct {
	options
	commit string
	dir    string            // what is released
	work   string            // programs, while it is made
	link   map[string]string // what is linked into tegen
	pushed []image
	golang string    // the version of Go that the programs are compiled with
	time   time.Time // of the commit
	stdout io.Writer
}

// image is the name that an image will have where it is pushed to.
type image struct{ repository, tag, digest string }

// String is by which an image is pulled: the digest counts, the tag is for people.
func (i image) String() string { return i.repository + ":" + i.tag + "@" + i.digest }

// make writes the release, all of it or nothing.
func (o options) make(ctx context.Context, stdout io.Writer) error {
	commit, err := o.checkCommit(ctx)
	if err != nil {
		return err
	}
	r := &release{options: o, commit: commit, link: map[string]string{}, stdout: stdout}
	if r.work, err = os.MkdirTemp("", "tegen-release-"); err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	defer os.RemoveAll(r.work) //nolint:errcheck // a folder for temporary files; the release holds what it needs of it
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	if err := images.Replace(o.out, func(dir string) error { return r.write(ctx, dir) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is tegen %s; push its images: make push-release REGISTRY=%s\n", o.out, r.version,
		o.registry)
	return err
}

// write makes the parts, each of which may need those before.
func (r *release) write(ctx context.Context, dir string) error {
	r.dir = dir
	for _, part := range []func(context.Context) error{
		r.writeImages, r.writeArchives, r.writeModule, r.writeManifests, r.writeNotes, r.writeProvenance,
		r.writeChecksums,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeImages builds those of tegen's companions first, since tegen names them.
func (r *release) writeImages(ctx context.Context) error {
	o := images.Options{Root: r.root}
	for _, p := range r.platforms {
		if p.system == "linux" {
			o.Architectures = append(o.Architectures, p.arch)
		}
	}
	for _, companion := range []bool{true, false} {
		for _, i := range r.images {
			if variable := linked[i.Name]; (variable != "") == companion {
				if err := r.writeImage(ctx, i, o, variable); err != nil {
					return err
				}
			}
		}
		o.Link = r.link
	}
	return nil
}

func (r *release) writeImage(ctx context.Context, i images.Image, o images.Options, variable string) error {
	b, err := i.Build(ctx, o)
	if err == nil {
		err = b.Check()
	}
	if err != nil {
		return err
	}
	if r.version == "" {
		r.version = b.Version
	}
	if b.Version != r.version {
		return fmt.Errorf("the program in the image %s calls itself %q, not %s", i.Name, b.Version, r.version)
	}
	reference, err := images.Reference(r.registry, i.Name, b.Tag())
	if err != nil {
		return err
	}
	digest, err := b.Index.Digest()
	if err != nil {
		return err
	}
	named := image{reference.Context().Name(), reference.TagStr(), digest.String()}
	r.pushed = append(r.pushed, named)
	if variable != "" {
		r.link[variable] = named.String()
	}
	if err := b.Write(filepath.Join(r.dir, "images"), reference); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.stdout, "image %s\n", named)
	return err
}

func (r *release) target(name string, p platform) program.Target {
	module := strings.TrimPrefix(strings.TrimPrefix(name, "tegen"), "-") // tegen's is the repository itself
	t := program.Target{Root: filepath.Join(r.root, module), Package: "./cmd/" + name, OS: p.system, Arch: p.arch}
	if name == "tegen" {
		t.Link = r.link
	}
	return t
}

// build compiles a program once, and returns its file.
func (r *release) build(ctx context.Context, name string, p platform) (string, error) {
	file := filepath.Join(r.work, name+"-"+p.system+"-"+p.arch)
	_, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		err = r.target(name, p).Build(ctx, file)
	}
	return file, err
}

// call returns what a program of the release prints on this machine.
func (r *release) call(ctx context.Context, name string, args ...string) ([]byte, error) {
	file, err := r.build(ctx, name, platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, file, args...)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s %q: %w: %s", name, args, err, bytes.TrimSpace(words.Bytes()))
	}
	return out, nil
}

// writeFile writes a file of the release.
func (r *release) writeFile(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644) //nolint:gosec // everybody may read a release
}
