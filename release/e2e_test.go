package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/internal/provenance"
)

// TestSnapshot makes a snapshot of this commit for this machine's architecture in two clones, and uses the first as
// whoever downloads it does: with sha256sum, with tar, and with what is in the archive. 'make e2e-release' runs it.
func TestSnapshot(t *testing.T) {
	if os.Getenv("TEGEN_RELEASE") == "" {
		t.Skip("compiles programs for minutes: run make e2e-release")
	}
	if runtime.GOOS != "linux" {
		t.Skip("a snapshot has images, and so an archive that runs on Linux")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var clones []string
	for range 2 {
		dir := clone(t, root)
		output(t, dir, "make", "--no-print-directory", "release", "PLATFORMS="+here().String(),
			"IMAGES=tegen,tegen-rendezvous", "REGISTRY=registry.example/acme", "VERSION=")
		clones = append(clones, filepath.Join(dir, "dist", "release"))
	}
	output(t, root, "diff", "--recursive", "--brief", clones[0], clones[1])
	dir := clones[0]
	output(t, dir, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	archives, err := filepath.Glob(filepath.Join(dir, "*-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("archives: %q, %v", archives, err)
	}
	unpacked := t.TempDir()
	tegen := ""
	for _, archive := range archives {
		output(t, unpacked, "tar", "-xzf", archive)
		base := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		name, _, _ := strings.Cut(base, "-v")
		file := filepath.Join(unpacked, base, name)
		if said := output(t, unpacked, file, "version"); !strings.HasPrefix(said, name+" v") {
			t.Errorf("%s version prints %s", name, said)
		}
		output(t, unpacked, "bash", "-n", filepath.Join(unpacked, base, "completions", name+".bash"))
		if name == "tegen" {
			tegen = file
		}
	}
	files := tree(t, dir)
	requireRenders(t, root, tegen, files)
	inputs := requireSubjects(t, files, 2)
	head := strings.TrimSpace(output(t, root, "git", "rev-parse", "HEAD"))
	if inputs[0].Digest["gitCommit"] != head || !slices.ContainsFunc(inputs, func(r provenance.Resource) bool {
		return r.URI == "pkg:golang/"+images.CertificatesModule+"@"+images.CertificatesVersion
	}) {
		t.Errorf("the inputs lack the commit %s or the root certificates: %v", head, inputs)
	}
}

// requireRenders asserts that tegen renders the README's job as it should, and the release's image where a job asks for
// the companion.
func requireRenders(t *testing.T, root, tegen string, files map[string]string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(root, "golden", "minimal", "base.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The golden file is of a build without a version, which is "(devel)".
	version := regexp.MustCompile(`(?m)^( +tegen\.dev/version: )v.*$`)
	got := output(t, root, tegen, "render", "fixtures/valid/minimal.yaml")
	if !version.MatchString(got) {
		t.Error("the README's job does not record the release's version")
	}
	if diff := cmp.Diff(string(want), version.ReplaceAllString(got, "${1}(devel)")); diff != "" {
		t.Errorf("the README's job is not rendered as it is in golden/minimal/base.yaml (-want +got):\n%s", diff)
	}
	var image string
	for line := range strings.Lines(output(t, root, tegen, "version")) {
		if name, is := strings.CutPrefix(line, "image "); is {
			image = strings.TrimSpace(name)
		}
	}
	_, digest, _ := strings.Cut(image, "@")
	if digest == "" || !strings.Contains(files["images/tegen-rendezvous/index.json"], digest) {
		t.Errorf("tegen's image of the rendezvous is %q, which is not what the release has", image)
	}
	job, err := os.ReadFile(filepath.Join(root, "fixtures", "valid", "minimal.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, string(job)+"  rendezvous: {store: companion}\n")
	for what, text := range map[string]string{
		"a job with a companion":  output(t, root, tegen, "render", file),
		"install rendezvous":      output(t, root, tegen, "install", "rendezvous", "--clients", "training"),
		"install-rendezvous.yaml": files["install-rendezvous.yaml"],
	} {
		if !strings.Contains(text, "image: "+image+"\n") {
			t.Errorf("%s has no %s", what, image)
		}
	}
}

// output runs a program without what a developer's settings add, and returns what it prints. It compiles with
// -trimpath, as the release does, to share the build cache.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "TMPDIR="+t.TempDir())
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s%s", filepath.Base(name), args, err, out, words.Bytes())
	}
	return string(out)
}
