package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
)

func TestFor(t *testing.T) {
	for name, want := range map[string]string{
		"quay.io/coreos/etcd:v3.5.21":                Etcd35,
		"mirror.acme.example/etcd:v3.5.21":           Etcd35,
		"quay.io/coreos/etcd:v3.6.14":                Etcd,
		"quay.io/coreos/etcd:v3.50.1":                Etcd,
		"registry.k8s.io/kubectl:v1.36.3":            Kubectl,
		"tegen-rendezvous:1.0.0":                     Rendezvous,
		"registry.example:5000/tegen-rendezvous":     Rendezvous,
		"registry.example/tegen-scheduler:1.0.0":     Scheduler,
		"registry.example/tegen-scheduler@sha256:01": Scheduler,
		"registry.k8s.io/pause:3.10":                 Pause,
		"ghcr.io/acme/tegen:1.0.0":                   Tegen,
		"docker.io/curlimages/curl:8.11.1":           Worker,
		"ghcr.io/acme/resnet@sha256:e3b0c442":        Worker,
		"registry.lab.example:5000/vision/ocr:7.0":   Worker,
		"ghcr.io/etcd/backup:1.0.0":                  Worker,
		"pytorch":                                    Worker,
		"":                                           Worker,
	} {
		if got := For(name); got != want {
			t.Errorf("For(%q) = %q, want %q", name, got, want)
		}
	}
}

// A recipe can be built wherever there is an image of its name.
func TestReferences(t *testing.T) {
	for _, name := range Names() {
		if _, ok := programs[name]; !ok && name != Worker {
			t.Errorf("no program for the image %s", name)
		}
		if got := For(name + ":v3.6.0"); got != name && name != Worker && name != Etcd35 {
			t.Errorf("For(%q) = %q", name, got)
		}
	}
	if _, err := Build(t.Context(), io.Discard, t.TempDir(), "nginx"); err == nil {
		t.Error("an image that does not exist was built")
	}
}

// sample is a recipe of two layers. The files of the first can be counted.
func sample(top string, built *int) recipe {
	bottom := []layer.Entry{
		layer.Folder("/usr"), layer.File("/usr/program", 0o755, "#!"), layer.Link("/program", "usr/program"),
	}
	above := []layer.Entry{layer.File("/etc", 0o644, top)}
	return recipe{
		image: "sample",
		layers: []part{
			{key: keyOfEntries(bottom), entries: func() ([]layer.Entry, error) { *built++; return bottom, nil }},
			{key: keyOfEntries(above), entries: func() ([]layer.Entry, error) { return above, nil }},
		},
		config: v1.Config{
			User: images.User, Env: []string{searchPath}, Entrypoint: []string{"/program"},
			WorkingDir: "/usr",
		},
	}
}

// What containerd, kind and docker read: every digest and size holds, and nothing is beside what is referred to.
func TestArchive(t *testing.T) {
	path, err := sample("one", new(int)).build(t.Context(), io.Discard, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample("", new(int)).config, c.Config); diff != "" || c.OS != "linux" || c.Architecture == "" {
		t.Errorf("configuration %+v (-want +got):\n%s", c, diff)
	}
	files := untar(t, read(t, path))
	var m tarball.Manifest
	if err := json.Unmarshal(files["manifest.json"], &m); err != nil || len(m) != 1 {
		t.Fatalf("%s: %v", files["manifest.json"], err)
	}
	if diff := cmp.Diff([]string{"localhost/tegen-test/sample:1"}, m[0].RepoTags); diff != "" {
		t.Errorf("the image's names (-want +got):\n%s", diff)
	}
	for i, name := range m[0].Layers {
		sum := sha256.Sum256(files[name])
		if got := "sha256:" + hex.EncodeToString(sum[:]); got != c.RootFS.DiffIDs[i].String() {
			t.Errorf("the configuration names %s, and %s holds %s", c.RootFS.DiffIDs[i], name, got)
		}
	}
	if want := len(m[0].Layers) + len([]string{m[0].Config, "manifest.json"}); len(files) != want ||
		len(m[0].Layers) != 2 {
		t.Errorf("%d layers, and %d files, want %d: nothing refers to some", len(m[0].Layers), len(files), want)
	}
}

// The large layer is written once, whatever changes above it, and a second archive with it is what a first would be.
func TestReuse(t *testing.T) {
	dir, built := t.TempDir(), 0
	build := func(top, dir string) string {
		t.Helper()
		path, err := sample(top, &built).build(t.Context(), io.Discard, dir)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := build("one", dir)
	if again := build("one", dir); again != one {
		t.Errorf("the same image is in %s and %s", one, again)
	}
	two := build("two", dir)
	if one == two || built != 1 {
		t.Errorf("%s and %s were made by reading the first layer's files %d times", one, two, built)
	}
	if !bytes.Equal(read(t, two), read(t, build("two", t.TempDir()))) {
		t.Error("an archive with a copied layer differs from one that was written anew")
	}
	// What is no longer made goes, when nobody can be about to import it.
	past := time.Now().Add(-2 * unusedFor)
	others := filepath.Join(dir, "sample-2,0,0.tar")
	if err := errors.Join(os.WriteFile(others, nil, 0o600), os.Chtimes(others, past, past),
		os.Chtimes(one, past, past)); err != nil {
		t.Fatal(err)
	}
	three := build("three", dir)
	want := []string{filepath.Base(others), filepath.Base(two), filepath.Base(three)}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	broken := sample("one", new(int))
	broken.layers[1].entries = func() ([]layer.Entry,
		error,
	) {
		return []layer.Entry{{Path: "/x", Source: filepath.Join(dir, "none")}}, nil
	}
	if _, err := broken.build(t.Context(), io.Discard, dir); err == nil || !strings.Contains(err.Error(), "adding /x") {
		t.Errorf("a file that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sample("one", new(int)).build(ctx, io.Discard, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted build: %v", err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
