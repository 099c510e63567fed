package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/internal/provenance"
)

// sample is a clone of a repository whose programs print their arguments and the images that were linked into them. The
// last of its two commits has the tag v1.2.3, the first v1.2.2.
func sample(t *testing.T) string {
	t.Helper()
	const imports, prints = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n", "if os.Args[1] == \"man\" { " +
		"os.Mkdir(os.Args[2], 0o755); os.WriteFile(os.Args[2]+\"/tegen.1\", []byte(\".TH\"), 0o644) }; " +
		"fmt.Println(os.Args[1:]"
	plain := imports + ")\n\nfunc main() { " + prints + ") }\n"
	dir := filepath.Join(t.TempDir(), "origin")
	for name, text := range map[string]string{
		"go.mod": "module github.com/tegen-dev/tegen\n\ngo 1.26.0\n",
		"go.sum": "example.org/a v1.0.0 h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=\n" +
			"example.org/a v1.0.0/go.mod h1:x=\n",
		"LICENSE": "as you like\n", "README.md": "# tegen\n", ".gitignore": "/dist/\n",
		"internal/names/names.go": "package names\n\nvar ReleasedRendezvous, ReleasedScheduler string\n",
		"cmd/tegen/main.go": imports + "\n\t\"github.com/tegen-dev/tegen/internal/names\"\n)\n\n" +
			"func main() { " + prints + ", names.ReleasedRendezvous, names.ReleasedScheduler) }\n",
		"schema/job.cue":                          "package schema\n\n#TrainingJob: kind!: string\n",
		"schema/cue.mod/module.cue":               "module: \"tegen.dev/schema@v1\"\nlanguage: version: \"v0.17.0\"\n",
		"schema/definition/definitions.json":      "{}\n",
		"rendezvous/cmd/tegen-rendezvous/main.go": plain, "scheduler/cmd/tegen-scheduler/main.go": plain,
		"rendezvous/go.mod": "module github.com/tegen-dev/tegen/rendezvous\n\ngo 1.26.0\n", "rendezvous/go.sum": "",
		"scheduler/go.mod": "module github.com/tegen-dev/tegen/scheduler\n\ngo 1.26.0\n", "scheduler/go.sum": "",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	run := func(args ...string) { gitIn(t, dir, args...) }
	run("init", "--quiet", "--initial-branch=main")
	run("add", ".")
	run("commit", "--quiet", "--message=Begin")
	for _, module := range []string{"", "rendezvous", "scheduler"} {
		run("tag", path.Join(module, "v1.2.2"))
	}
	write(t, filepath.Join(dir, "README.md"), "# tegen, again\n")
	run("commit", "--quiet", "--all", "--message=Say it again")
	for _, module := range []string{"", "rendezvous", "scheduler"} {
		run("tag", path.Join(module, "v1.2.3"))
	}
	return clone(t, dir)
}

func clone(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere", "clone")
	gitIn(t, dir, "clone", "--quiet", dir, to)
	return to
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
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

// here is the platform of this machine's architecture that has images.
func here() images.System { return images.System{OS: "linux", Arch: runtime.GOARCH} }

func sampleOptions(root string) options {
	return options{
		root: root, dir: filepath.Join(root, "dist", "release"), tag: "v1.2.3", registry: "registry.example/acme",
		systems: []images.System{here(), {OS: "windows", Arch: "amd64"}}, images: images.All(),
		progress: log.New(io.Discard, "", 0),
	}
}

// tree is what the files below a folder hold.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		short, _ := filepath.Rel(dir, name)
		files[filepath.ToSlash(short)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRelease: two clones of a commit give the same files, and these are whole and name each other rightly.
func TestRelease(t *testing.T) {
	first := sample(t)
	second := clone(t, first)
	gitIn(t, second, "checkout", "--quiet", "--detach") // as builds do
	var said bytes.Buffer
	for _, root := range []string{first, second} {
		o := sampleOptions(root)
		o.progress.SetOutput(&said)
		if err := o.makeRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	files := tree(t, filepath.Join(first, "dist", "release"))
	if diff := cmp.Diff(files, tree(t, filepath.Join(second, "dist", "release"))); diff != "" {
		t.Errorf("two clones of one commit (-first +second):\n%s", diff)
	}
	var names []string
	for name := range files {
		if !strings.HasPrefix(name, "images/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	here := "-v1.2.3-linux-" + runtime.GOARCH
	if diff := cmp.Diff([]string{
		"NOTES.md", "SHA256SUMS", "environment.schema.json",
		"install-crds.yaml", "install-rendezvous.yaml", "install-scheduler.yaml",
		"provenance.json",
		"tegen-rendezvous" + here + ".spdx.json", "tegen-rendezvous" + here + ".tar.gz",
		"tegen-rendezvous-v1.2.3-windows-amd64.spdx.json", "tegen-rendezvous-v1.2.3-windows-amd64.zip",
		"tegen-schema-v1.2.3.zip",
		"tegen" + here + ".spdx.json", "tegen" + here + ".tar.gz",
		"tegen-v1.2.3-windows-amd64.spdx.json", "tegen-v1.2.3-windows-amd64.zip",
		"trainingjob.schema.json",
	}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	t.Run("checksums", func(t *testing.T) { requireChecksums(t, files) })
	t.Run("provenance", func(t *testing.T) { requireInputs(t, requireSubjects(t, files, 3)) })
	t.Run("images", func(t *testing.T) { requireImages(t, files, said.String()) })
	t.Run("archives", func(t *testing.T) { requireArchives(t, files) })
	notes, want := files["NOTES.md"], "# tegen v1.2.3\n\n## Changes since v1.2.2\n\n- Say it again ("
	if !strings.HasPrefix(notes, want) || strings.Contains(notes, "Begin") {
		t.Errorf("the notes are\n%s", notes)
	}
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// requireChecksums asserts that every file has its line.
func requireChecksums(t *testing.T, files map[string]string) {
	t.Helper()
	want := map[string]string{}
	for name, content := range files {
		if name != "SHA256SUMS" {
			want[name] = digestOf(content)
		}
	}
	got := map[string]string{}
	for line := range strings.Lines(files["SHA256SUMS"]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got[name] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}
}

// requireSubjects asserts that every file is a subject of the provenance, and so many images by their layouts' digests.
// It returns the inputs.
func requireSubjects(t *testing.T, files map[string]string, images int) []provenance.Resource {
	t.Helper()
	var s provenance.Statement
	if err := json.Unmarshal([]byte(files["provenance.json"]), &s); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for name, content := range files {
		if name != "SHA256SUMS" && name != "provenance.json" {
			want[name] = digestOf(content)
		}
	}
	got := map[string]string{}
	for _, subject := range s.Subject {
		if image, is := strings.CutPrefix(subject.Name, "registry.example/acme/"); is {
			digest := "sha256:" + subject.Digest["sha256"]
			if !strings.Contains(files["images/"+image+"/index.json"], digest) {
				t.Errorf("the layout of %s has no %s", image, digest)
			}
			continue
		}
		got[subject.Name] = subject.Digest["sha256"]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if n := len(s.Subject) - len(got); n != images {
		t.Errorf("%d images are subjects, want %d", n, images)
	}
	return s.Predicate.BuildDefinition.ResolvedDependencies
}

// requireInputs asserts that provenance names the commit, and modules by Go's own sums.
func requireInputs(t *testing.T, inputs []provenance.Resource) {
	t.Helper()
	if len(inputs) != 2 || len(inputs[0].Digest["gitCommit"]) != 40 {
		t.Fatalf("the inputs are %v", inputs)
	}
	// The example of https://github.com/in-toto/attestation, spec/v1/digest_set.md.
	if diff := cmp.Diff(provenance.Resource{URI: "pkg:golang/example.org/a@v1.0.0", Digest: map[string]string{
		"dirHash": "2a1bb6127fb481c60f67692e22285fb306f3c6ffe62075e0ccf674d7c3adcb8f",
	}}, inputs[1]); diff != "" {
		t.Errorf("a module (-want +got):\n%s", diff)
	}
}

// requireImages asserts that what was linked into tegen, and printed, are the digests of the layouts.
func requireImages(t *testing.T, files map[string]string, said string) {
	t.Helper()
	for _, companion := range []string{"tegen-rendezvous", "tegen-scheduler"} {
		var index struct {
			Manifests []struct{ MediaType, Digest string }
		}
		if err := json.Unmarshal([]byte(files["images/"+companion+"/index.json"]), &index); err != nil {
			t.Fatal(err)
		}
		name := "registry.example/acme/" + companion + ":v1.2.3@" + index.Manifests[0].Digest
		if text := files["install-rendezvous.yaml"]; !strings.Contains(text, name) {
			t.Errorf("tegen has the images %s, want %s", text, name)
		}
		if !strings.Contains(said, "image "+name+", ") || !strings.Contains(files["NOTES.md"], "`"+name+"`") {
			t.Errorf("%s is not in the notes or not in\n%s", name, said)
		}
	}
}

// requireArchives asserts that the archives have what they should, by the formats' own readers.
func requireArchives(t *testing.T, files map[string]string) {
	t.Helper()
	base := "tegen-v1.2.3-linux-" + runtime.GOARCH
	want := []string{
		base + "/", base + "/LICENSE", base + "/NOTICE", base + "/README.md", base + "/completions/",
		base + "/completions/_tegen", base + "/completions/tegen.bash", base + "/completions/tegen.fish",
		base + "/completions/tegen.ps1", base + "/man/", base + "/man/man1/",
		base + "/man/man1/tegen.1", base + "/tegen",
	}
	compressed, err := gzip.NewReader(strings.NewReader(files[base+".tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, header.Name)
		if strings.HasSuffix(header.Name, "/tegen") && header.Mode != 0o755 ||
			header.ModTime.UTC().Format("2006-01-02 15:04:05") != "2026-01-02 03:04:05" {
			t.Errorf("%s has the mode %o and the time %s", header.Name, header.Mode, header.ModTime)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of an archive (-want +got):\n%s", diff)
	}
	zipped := files["tegen-rendezvous-v1.2.3-windows-amd64.zip"]
	archive, err := zip.NewReader(strings.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	program, err := fs.ReadFile(archive, "tegen-rendezvous-v1.2.3-windows-amd64/tegen-rendezvous.exe")
	if err != nil || !bytes.HasPrefix(program, []byte("MZ")) {
		t.Errorf("no program of Windows: %v", err)
	}
}

// TestMakeFails: what cannot be released is refused, and the last release stays.
func TestMakeFails(t *testing.T) {
	root := sample(t)
	worktree := filepath.Join(t.TempDir(), "worktree")
	gitIn(t, root, "worktree", "add", "--quiet", "--detach", worktree)
	changed := clone(t, root)
	write(t, filepath.Join(changed, "README.md"), "# another\n")
	broken := clone(t, root)
	write(t, filepath.Join(broken, "cmd", "tegen", "main.go"), "package main\n")
	gitIn(t, broken, "commit", "--quiet", "--all", "--message=Break it")
	for what, c := range map[string]struct {
		root, version, want string
	}{
		"another tag":             {root, "v1.2.2", `tegen-rendezvous has the version "v1.2.3" of the commit`},
		"a worktree":              {worktree, "", `has the version "" of the commit ""`},
		"a change":                {changed, "", "nothing uncommitted"},
		"what does not compile":   {broken, "", "compiling tegen for linux/"},
		"a registry of no name":   {root, "v1.2.3", "Acme"},
		"a folder that is a file": {root, "v1.2.3", "making the folder"},
	} {
		t.Run(what, func(t *testing.T) {
			o := sampleOptions(c.root)
			o.tag = c.version
			switch what {
			case "a registry of no name":
				o.registry = "registry.example/Acme"
			case "a folder that is a file":
				o.dir = filepath.Join(c.root, "README.md", "release")
			}
			last := filepath.Join(c.root, "dist", "release", "last")
			write(t, last, "the last release")
			err := o.makeRelease(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if found := tree(t, filepath.Join(c.root, "dist")); len(found) != 1 || found["release/last"] == "" {
				t.Errorf("there is %v", found)
			}
		})
	}
}

// TestRunFails: mistakes on the command line are reported before anything is compiled.
func TestRunFails(t *testing.T) {
	for want, args := range map[string]string{
		`no platform "linux/sparc": choose from [linux/amd64 linux/arm64 darwin/`: "-platforms linux/sparc release",
		"name linux/amd64 or linux/arm64 too":                                     "-platforms darwin/arm64 release",
		`no image "tegan": choose from [tegen-rendezvous tegen-scheduler tegen]`:  "-images tegen,tegan images",
		"must have all platforms and images":                                      "-tag v1.2.3 -images tegen release",
		"Acme/tegen":                                                              "-registry ghcr.io/Acme images",
		"v1+dirty":                                                                "-tag v1+dirty images",
		`unknown arguments ["v1.2.3"]`:                                            "v1.2.3",
		`unknown arguments ["images" "push"]`:                                     "images push",
		"-nothing":                                                                "-nothing",
	} {
		err := run(t.Context(), append([]string{"-dir", t.TempDir()}, strings.Fields(args)...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestParse: without flags, all is made; SOURCE_DATE_EPOCH has seconds since 1970.
func TestParse(t *testing.T) {
	var o options
	if err := o.parse("", "", "1767323045"); err != nil || len(o.systems) != 6 || len(o.images) != 3 ||
		o.created.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
		t.Errorf("%v, %v", o, err)
	}
	for _, epoch := range []string{"noon", "-1"} {
		if err := o.parse("", "", epoch); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("%q: %v", epoch, err)
		}
	}
	o.created = time.Time{}
	if err := o.parse("tegen tegen-scheduler", "linux/arm64", ""); err != nil || !o.created.IsZero() ||
		len(o.images) != 2 || len(o.systems) != 1 {
		t.Errorf("%v, %v", o, err)
	}
}

// TestModules: a line of go.sum that is none is an error, not a module fewer.
func TestModules(t *testing.T) {
	for text, want := range map[string]string{
		"example.org/a v1.0.0\n":            "is not a module, a version and a sum",
		"example.org/a v1.0.0 h2:Khu2\n":    "is no sum",
		"example.org/a v1.0.0 h1:Khu2*\n":   "is no sum",
		"example.org/a v1.0.0/go.mod h1:\n": "",
	} {
		err := dependOn(&provenance.Statement{}, text)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
