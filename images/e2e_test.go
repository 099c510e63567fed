package images_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImages builds what this commit's images are, twice, from clones in different folders: they are the same bytes,
// valid, and run. TEGEN_IMAGES names them, TEGEN_ARCHITECTURES what they are for; 'make e2e-images' sets both.
func TestImages(t *testing.T) {
	names, architectures := os.Getenv("TEGEN_IMAGES"), os.Getenv("TEGEN_ARCHITECTURES")
	if names == "" {
		t.Skip("compiles programs for minutes: run make e2e-images")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	const tag = "e2e"
	var first string
	var trees []map[string]string
	for _, flags := range []string{"-trimpath", "-trimpath -buildvcs=false"} { // shares the build cache with the images
		dir := clone(t, root)
		out := filepath.Join(dir, "dist", "images")
		cmd := exec.Command("go", "run", "./release", "-dir", out, "-images", names, "-platforms",
			"linux/"+strings.ReplaceAll(architectures, ",", ",linux/"), "-tag", tag, "images")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS="+flags, "TMPDIR="+t.TempDir())
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		t.Logf("\n%s", said)
		if first == "" {
			first = out
		}
		all := map[string]string{}
		for name, text := range tree(t, out) {
			all[strings.TrimPrefix(name, out)] = text
		}
		trees = append(trees, all)
	}
	for name, text := range trees[0] {
		if trees[1][name] != text {
			t.Errorf("%s differs between two clones of one commit", name)
		}
	}
	if len(trees[0]) != len(trees[1]) {
		t.Errorf("two clones of one commit have %d and %d files", len(trees[0]), len(trees[1]))
	}
	for name := range strings.SplitSeq(names, ",") {
		t.Run(name, func(t *testing.T) { requireWhole(t, filepath.Join(first, name)) })
	}
	t.Run("podman", func(t *testing.T) { runImages(t, root, first, names, tag) })
}

// requireWhole asserts that a layout is valid, and that each image's NOTICE has all modules that its SBOM lists.
func requireWhole(t *testing.T, dir string) {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var index v1.ImageIndex
	for _, d := range manifest.Manifests {
		if d.MediaType == types.OCIImageIndex {
			if index, err = top.ImageIndex(d.Digest); err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Errorf("the index: %v", err)
			}
			continue
		}
		artifact, err := top.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := artifact.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		img, err := index.Image(m.Subject.Digest)
		if err != nil {
			t.Fatalf("an SBOM is about what is not there: %v", err)
		}
		requireLicenses(t, modules(t, artifact), string(files(t, img)["NOTICE"].data))
	}
}

// modules are the names and versions of what an SBOM lists besides the program itself.
func modules(t *testing.T, artifact v1.Image) (all []string) {
	t.Helper()
	layers, err := artifact.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Packages []struct{ Name, VersionInfo, PrimaryPackagePurpose string }
	}
	if err := json.NewDecoder(content).Decode(&document); err != nil {
		t.Fatal(err)
	}
	for _, p := range document.Packages {
		if p.PrimaryPackagePurpose == "LIBRARY" && p.Name != "stdlib" {
			all = append(all, p.Name+" "+p.VersionInfo)
		}
	}
	return all
}

func requireLicenses(t *testing.T, modules []string, notice string) {
	t.Helper()
	if len(modules) < 5 {
		t.Errorf("the SBOM lists %q", modules)
	}
	for _, m := range modules {
		if !strings.Contains(notice, "==== "+m+", ") {
			t.Errorf("the SBOM lists %s, of which NOTICE has no licence", m)
		}
	}
}

// podman runs it, without what this machine's settings add.
func podman(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	if _, err := exec.LookPath("runc"); err == nil { // crun refuses cgroups of both versions
		args = append([]string{"--runtime", "runc"}, args...)
	}
	cmd := exec.Command("podman", args...)
	var out, words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &words
	err = cmd.Run()
	return out.String(), words.String(), err
}

// call is how a container is run, and what it prints.
type call struct {
	user  string // empty: the image's
	dir   string // where it runs, below the repository, as an Application's path is
	stdin []byte
	args  []string
	fails bool
	want  string
}

// runImages loads the archives as users do, and runs each image as kustomize, Argo CD and the rendered pods do: without
// a network, as a user who owns nothing, and with nothing to write to.
func runImages(t *testing.T, root, dir, names, tag string) {
	if _, err := exec.LookPath("podman"); err != nil {
		t.Skip("this machine has no podman, which would run the images")
	}
	list, err := os.ReadFile("testdata/resourcelist.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mistaken := bytes.Replace(list, []byte("target: jobset"), []byte("target: jobsets"), 1)
	cases := map[string][]call{
		"tegen": {
			{user: "nobody", stdin: list, want: "kind: JobSet"},
			{user: "nobody", stdin: mistaken, fails: true, want: `did you mean "jobset"`},
			{user: "999", args: []string{"version"}, want: "tegen v"},
			{stdin: list, args: []string{"fn"}, want: "kind: JobSet"},
			// As the plugin of Argo CD.
			{user: "999", dir: "overlays/kind", args: []string{"render", "--overlay", "."}, want: "kind: Job"},
		},
		"tegen-rendezvous": {{user: "nobody", args: []string{"version"}, want: "tegen-rendezvous v"}},
		"tegen-scheduler":  {{user: "nobody", args: []string{"--version"}, want: "Kubernetes v1."}},
	}
	for name := range strings.SplitSeq(names, ",") {
		archive := filepath.Join(dir, name+"-"+runtime.GOARCH+".tar")
		if _, said, err := podman(t, nil, "load", "--quiet", "--input", archive); err != nil {
			t.Fatalf("loading %s: %v: %s", archive, err, said)
		}
		image := "localhost/" + name + ":" + tag
		t.Cleanup(func() {
			if _, said, err := podman(t, nil, "rmi", "--force", image); err != nil {
				t.Errorf("removing %s: %v: %s", image, err, said)
			}
		})
		if name == "tegen" {
			t.Run("function", func(t *testing.T) { runFunctions(t, image, list) })
		}
		for _, c := range cases[name] {
			args := []string{
				"run", "--rm", "--interactive", "--network=none", "--read-only", "--read-only-tmpfs=false",
				"--cap-drop=all", "--security-opt=no-new-privileges",
			}
			args = append(args, limits...)
			if c.user != "" {
				args = append(args, "--user="+c.user)
			}
			if c.dir != "" {
				args = append(args, "--volume="+root+":/repository:ro", "--workdir=/repository/"+c.dir)
			}
			out, said, err := podman(t, c.stdin, append(append(args, image), c.args...)...)
			if (err != nil) != c.fails || !strings.Contains(out+said, c.want) {
				t.Errorf("%s %q as %q: %v, want %q: %s%s", name, c.args, c.user, err, c.want, out, said)
			}
		}
	}
}
