package images_test

import (
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/images"
)

// commitTime is when the sample was committed.
const commitTime = "2026-01-02T03:04:05Z"

// sample is a repository of git with a small program in place of the command tegen, at a tag.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.org/tegen\n\ngo 1.26.0\n",
		"LICENSE":           "as you like\n",
		"cmd/tegen/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(len(os.Args)) }\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message=one")
	git(t, dir, "tag", "v1.2.3")
	return dir
}

func clone(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere", "clone")
	git(t, dir, "clone", "--quiet", dir, to)
	return to
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE="+commitTime,
		"GIT_COMMITTER_DATE="+commitTime)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tegen() images.Image { return images.All()[2] }

func build(t *testing.T, o images.Options) *images.Built {
	t.Helper()
	b, err := tegen().Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var once struct {
	sync.Once
	built    *images.Built
	revision string
}

// standard is the image of a sample, for linux/amd64, that the tests share which do not ask how it is built.
func standard(t *testing.T) images.Built {
	t.Helper()
	once.Do(func() {
		dir := sample(t)
		revision, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
		if err != nil {
			t.Fatal(err)
		}
		once.built, once.revision = build(t, images.Options{Root: dir, Systems: amd64}), string(revision)
	})
	if once.built == nil {
		t.Fatal("building the sample failed in another test")
	}
	b := *once.built
	b.Platforms = slices.Clone(b.Platforms)
	return b
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func config(t *testing.T, b *images.Built) *v1.ConfigFile {
	t.Helper()
	c, err := b.Platforms[0].Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var amd64 = images.Systems()[:1]

// TestReproducible: one commit gives one digest, whatever the folder and the settings of the go command; another state
// of the files gives another, and says so.
func TestReproducible(t *testing.T) {
	dir := sample(t)
	first := build(t, images.Options{Root: dir, Systems: amd64})
	other := clone(t, dir)
	t.Setenv("GOFLAGS", "-buildvcs=false")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("TMPDIR", t.TempDir())
	second := build(t, images.Options{Root: other, Systems: amd64})
	if a, b := digest(t, first.Index), digest(t, second.Index); a != b {
		t.Errorf("two clones of one commit have the digests %s and %s", a, b)
	}
	if a, b := digest(t, first.Platforms[0].SBOM), digest(t, second.Platforms[0].SBOM); a != b {
		t.Errorf("two clones of one commit have SBOMs of the digests %s and %s", a, b)
	}
	if first.Version != "v1.2.3" || first.Tag() != "v1.2.3" {
		t.Errorf("version %q and tag %q at the tag v1.2.3", first.Version, first.Tag())
	}

	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	dated := config(t, build(t, images.Options{Root: other, Systems: amd64, Created: at}))
	if !dated.Created.Equal(at) {
		t.Errorf("created at %s, want %s", dated.Created, at)
	}

	write(t, filepath.Join(other, "cmd/tegen/other.go"), "package main\n")
	dirty := build(t, images.Options{Root: other, Systems: amd64})
	if digest(t, dirty.Index) == digest(t, first.Index) || !strings.HasSuffix(dirty.Version, "+dirty") ||
		strings.Contains(dirty.Tag(), "+") {
		t.Errorf("files that differ from the commit give version %q and tag %q", dirty.Version, dirty.Tag())
	}

	if err := os.RemoveAll(filepath.Join(other, ".git")); err != nil {
		t.Fatal(err)
	}
	b := build(t, images.Options{Root: other, Systems: amd64})
	c := config(t, b)
	for _, label := range []string{"org.opencontainers.image.version", "org.opencontainers.image.revision"} {
		if got, ok := c.Config.Labels[label]; ok {
			t.Errorf("an archive of the sources: label %s=%q", label, got)
		}
	}
	if b.Tag() != "dev" || c.Created.Unix() != 0 {
		t.Errorf("an archive of the sources: tag %q, created at %s", b.Tag(), c.Created)
	}
}

// TestConfig: what a container engine, a registry's page and kustomize go by.
func TestConfig(t *testing.T) {
	b := standard(t)
	got := config(t, &b)
	labels := map[string]string{
		"org.opencontainers.image.title":         "tegen",
		"org.opencontainers.image.description":   tegen().Description,
		"org.opencontainers.image.source":        "https://example.org/tegen",
		"org.opencontainers.image.documentation": "https://example.org/tegen/blob/main/docs/images.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.created":       commitTime,
		"org.opencontainers.image.version":       "v1.2.3",
		"org.opencontainers.image.revision":      strings.TrimSpace(once.revision),
	}
	want := v1.Config{
		User:       "65534:65534",
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Entrypoint: []string{"/usr/local/bin/tegen"},
		Cmd:        []string{"fn"},
		Labels:     labels,
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if got.OS != "linux" || got.Architecture != "amd64" || got.Created.Format(time.RFC3339) != commitTime {
		t.Errorf("%s/%s, created at %s", got.OS, got.Architecture, got.Created)
	}
	m, err := b.Platforms[0].Image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := b.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for of, annotations := range map[string]map[string]string{"image": m.Annotations, "index": index.Annotations} {
		if diff := cmp.Diff(labels, annotations); diff != "" {
			t.Errorf("annotations of the %s (-want +got):\n%s", of, diff)
		}
	}
	for _, i := range images.All()[:2] { // their manifests say what to do
		if len(i.Command) > 0 {
			t.Errorf("%s does something without arguments: %q", i.Name, i.Command)
		}
	}
}

// files are those of an image's layers, by path.
func files(t *testing.T, img v1.Image) map[string]file {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]file{}
	for _, l := range layers {
		content, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, untar(t, content))
	}
	return all
}

// TestFiles: nothing is in an image but a static program, its licences, two users, certificates and a folder for
// temporary files; and the two platforms differ in the program alone.
func TestFiles(t *testing.T) {
	dir := sample(t)
	b := build(t, images.Options{Root: dir, Systems: images.Systems()[:2]})
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, p := range b.Platforms {
		all := files(t, p.Image)
		modes := map[string]string{}
		for path, f := range all {
			modes[path] = f.mode.String()
		}
		if diff := cmp.Diff(map[string]string{
			"usr/": "drwxr-xr-x", "usr/local/": "drwxr-xr-x", "usr/local/bin/": "drwxr-xr-x",
			"usr/local/bin/tegen": "-rwxr-xr-x", "LICENSE": "-rw-r--r--", "NOTICE": "-rw-r--r--",
			"etc/": "drwxr-xr-x", "etc/passwd": "-rw-r--r--", "etc/group": "-rw-r--r--", "etc/ssl/": "drwxr-xr-x",
			"etc/ssl/certs/": "drwxr-xr-x", "etc/ssl/certs/ca-certificates.crt": "-rw-r--r--", "tmp/": "dtrwxrwxrwx",
			"home/": "drwxr-xr-x", "home/argocd/": "drwxr-xr-x", "home/argocd/cmp-server/": "drwxr-xr-x",
			"home/argocd/cmp-server/config/": "drwxr-xr-x", "home/argocd/cmp-server/config/plugin.yaml": "-rw-r--r--",
		}, modes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Arch, diff)
		}
		program, err := elf.NewFile(bytes.NewReader(all["usr/local/bin/tegen"].data))
		if err != nil {
			t.Fatal(err)
		}
		if program.Machine != machines[p.Arch] {
			t.Errorf("linux/%s has a program for %s", p.Arch, program.Machine)
		}
		libraries, err := program.ImportedLibraries()
		if err != nil || len(libraries) > 0 || program.Section(".interp") != nil {
			t.Errorf("the program needs a loader or libraries %q: %v", libraries, err)
		}
		if got := string(all["LICENSE"].data); got != "as you like\n" {
			t.Errorf("LICENSE is %q", got)
		}
		for _, want := range []string{"==== Go, LICENSE\n", "Mozilla Public License"} {
			if !strings.Contains(string(all["NOTICE"].data), want) {
				t.Errorf("NOTICE lacks %q", want)
			}
		}
		for _, want := range []string{"\nnobody:x:65534:65534:", "\nargocd:x:999:999:"} {
			if !strings.Contains(string(all["etc/passwd"].data), want) {
				t.Errorf("/etc/passwd lacks %q", want)
			}
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(all["etc/ssl/certs/ca-certificates.crt"].data) {
			t.Error("there are no root certificates")
		}
	}
}

// TestPlugin: the configuration has what Argo CD's server of plugins asks for, and its program is the image's.
func TestPlugin(t *testing.T) {
	b := standard(t)
	all := files(t, b.Platforms[0].Image)
	var got struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Generate struct{ Command []string }
			Discover any
		}
	}
	if err := yaml.UnmarshalStrict(all["home/argocd/cmp-server/config/plugin.yaml"].data, &got); err != nil {
		t.Fatal(err)
	}
	if got.APIVersion != "argoproj.io/v1alpha1" || got.Kind != "ConfigManagementPlugin" ||
		got.Metadata.Name != "tegen" || len(got.Spec.Generate.Command) == 0 || got.Spec.Discover != nil {
		t.Errorf("the plugin: %+v", got)
	}
	if _, ok := all["usr/local/bin/"+got.Spec.Generate.Command[0]]; !ok {
		t.Errorf("the image has no %q", got.Spec.Generate.Command)
	}
}

// TestSBOM: each platform has one, which a registry lists as a referrer of its image.
func TestSBOM(t *testing.T) {
	b := standard(t)
	p := b.Platforms[0]
	m, err := p.SBOM.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if m.ArtifactType != "application/spdx+json" || m.Subject == nil ||
		m.Subject.Digest.String() != digest(t, p.Image) ||
		m.Config.MediaType != "application/vnd.oci.empty.v1+json" || len(m.Layers) != 1 ||
		m.Layers[0].MediaType != "application/spdx+json" {
		t.Errorf("the manifest of the SBOM: %+v", m)
	}
	layers, err := p.SBOM.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Name     string
		Packages []struct{ Name, VersionInfo string }
	}
	if err := json.NewDecoder(content).Decode(&document); err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, p := range document.Packages {
		packages = append(packages, p.Name)
	}
	if want := []string{"example.org/tegen/cmd/tegen", "ca-certificates", "stdlib"}; !slices.Equal(want, packages) ||
		document.Name != "tegen v1.2.3 linux/amd64" {
		t.Errorf("the SBOM of %q lists %q, want %q", document.Name, packages, want)
	}
}

// TestSize: an image that grows beyond its limit fails the build, by name.
func TestSize(t *testing.T) {
	if b := standard(t); b.Platforms[0].Size < 1e5 {
		t.Errorf("%d bytes", b.Platforms[0].Size)
	}
	small := tegen()
	small.MaxSize = 1e5
	if _, err := small.Build(t.Context(), images.Options{Root: sample(t), Systems: amd64}); err == nil ||
		!strings.Contains(err.Error(), "building the image tegen for linux/amd64: it has ") {
		t.Errorf("an image of more than %d bytes: %v", small.MaxSize, err)
	}
	for _, i := range images.All() {
		if want := map[string]int64{"tegen-scheduler": 60e6}[i.Name]; i.MaxSize != max(want, 40e6) {
			t.Errorf("%s may have %d bytes", i.Name, i.MaxSize)
		}
	}
}

// TestErrors: what cannot be built says why, and leaves nothing behind.
func TestErrors(t *testing.T) {
	broken := sample(t)
	write(t, filepath.Join(broken, "cmd/tegen/main.go"), "package main\n\nfunc main() { nothing() }\n")
	unlicensed := sample(t)
	if err := os.Remove(filepath.Join(unlicensed, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for root, want := range map[string]string{
		broken:      "building the image tegen for linux/amd64: compiling tegen for linux/amd64: running go build: ",
		unlicensed:  "LICENSE",
		t.TempDir(): "go.mod",
	} {
		_, err := tegen().Build(t.Context(), images.Options{Root: root, Systems: amd64})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
