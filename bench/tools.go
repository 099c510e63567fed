package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tool is one program and how it is asked for the objects of an input.
type tool struct {
	name    string
	pkg     string
	modfile string // "" is the module's own go.mod
	built   string // a program that is built already, in place of pkg
	args    func(root string, in input) []string

	binary  string
	version string
}

// tools start with tegen, which the others are compared with.
func tools() []tool {
	const peers = "tools.mod"
	return []tool{
		{name: "tegen", pkg: "./cmd/tegen", args: func(_ string, in input) []string {
			return []string{"render", in.trainingJobs}
		}},
		{name: "floor", pkg: "./bench/floor", args: func(_ string, in input) []string { return []string{in.values} }},
		{name: "helm", pkg: "helm.sh/helm/v4/cmd/helm", modfile: peers, args: func(root string, in input) []string {
			return []string{
				"template", "bench", filepath.Join(root, "bench", "testdata", "chart"), "--values",
				in.values,
			}
		}},
		{
			name: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5", modfile: peers,
			args: func(_ string, in input) []string {
				return []string{"build", in.kustomization}
			},
		},
		{name: "cue", pkg: "cuelang.org/go/cmd/cue", modfile: peers, args: func(root string, in input) []string {
			return []string{
				"export", "--out", "text", "--expression", "stream",
				filepath.Join(root, "bench", "testdata", "cue", "jobs.cue"), in.values,
			}
		}},
	}
}

// choose returns tegen and the named programs.
func choose(names string) ([]tool, error) {
	known := tools()
	chosen := known[:1:1]
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(known, func(t tool) bool { return t.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("-tools: unknown program %q", name)
		}
		if !slices.ContainsFunc(chosen, func(t tool) bool { return t.name == known[i].name }) {
			chosen = append(chosen, known[i])
		}
	}
	return chosen, nil
}

// earlier is another build of tegen, to see what a change costs.
func earlier(program string) tool {
	t := tools()[0]
	t.name, t.built = "earlier", program
	return t
}

// bench is one run of the bench.
type bench struct {
	options
	dir      string // of programs, inputs and outputs
	root     string // of the module
	progress *log.Logger
	slow     map[string]string // programs left out of larger sizes, and why
}

// build compiles every program once, so that no timed run compiles anything.
func (b *bench) build(ctx context.Context) error {
	for i := range b.tools {
		t := &b.tools[i]
		start := time.Now()
		t.binary = filepath.Join(b.dir, "bin", t.name)
		if t.built != "" {
			if err := install(t.built, t.binary); err != nil {
				return fmt.Errorf("copying %s: %w", t.built, err)
			}
			continue
		}
		linked := t.binary + ".linked"
		args := []string{"build", "-o", linked}
		if t.modfile != "" {
			args = append(args, "-modfile="+t.modfile)
		}
		cmd := exec.CommandContext(ctx, "go", append(args, t.pkg)...)
		cmd.Dir, cmd.Stderr = b.root, b.progress.Writer()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running go build %s: %w", t.pkg, err)
		}
		if err := errors.Join(install(linked, t.binary), os.Remove(linked)); err != nil {
			return fmt.Errorf("copying %s: %w", t.name, err)
		}
		info, err := buildinfo.ReadFile(t.binary)
		if err != nil {
			return fmt.Errorf("reading the version of %s: %w", t.name, err)
		}
		if t.modfile != "" {
			t.version = info.Main.Version
		}
		b.progress.Printf("built %s in %.0f s", t.name, time.Since(start).Seconds())
	}
	return nil
}

// install copies a program that was just linked, in small pieces, as it is unpacked from an archive. Of a file that
// was written in large ones some kernels map larger pieces, all of which count as memory of the program: 20 MB or more.
func install(linked, to string) error {
	in, err := os.Open(linked)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{in}) // not by one call of the kernel's
	return errors.Join(err, out.Close())
}

// execute runs a program on an input in a launcher; its output is in the file named output afterwards.
func (b *bench) execute(ctx context.Context, t tool, in input, output string) (sample, error) {
	home := filepath.Join(b.dir, "home") // of nobody: no one's plugins, caches and settings take part
	if err := os.MkdirAll(home, 0o755); err != nil {
		return sample{}, fmt.Errorf("making a home directory: %w", err)
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	s, err := launch(ctx, env, output, append([]string{t.binary}, t.args(b.root, in)...))
	if err != nil {
		return s, fmt.Errorf("running %s on %d jobs: %w", t.name, in.jobs, err)
	}
	return s, nil
}
