package images_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/tegen-dev/tegen/images"
)

type file struct {
	mode fs.FileMode
	data []byte
}

func untar(t *testing.T, content io.Reader) map[string]file {
	t.Helper()
	unzipped, err := gzip.NewReader(content)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]file{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d and is of %s", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = file{h.FileInfo().Mode(), data}
	}
}

func written(t *testing.T, b images.Built, dir, registry string) {
	t.Helper()
	reference, err := images.Reference(registry, b.Name, b.Tag())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(dir, reference); err != nil {
		t.Fatal(err)
	}
}

// TestWrite: a layout whose digests and sizes all hold, with the index under its tag and the SBOM beside it; and an
// archive under the whole reference. Writing again gives the same bytes, and nothing of before stays.
func TestWrite(t *testing.T) {
	b := standard(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tegen", "blobs", "sha256", "old"), "of another version")
	written(t, b, dir, "registry.example:5000/acme")

	top, err := layout.ImageIndexFromPath(filepath.Join(dir, "tegen"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 2 || manifest.Manifests[0].Digest.String() != digest(t, b.Index) ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" ||
		manifest.Manifests[1].Digest.String() != digest(t, b.Platforms[0].SBOM) ||
		manifest.Manifests[1].ArtifactType != "application/spdx+json" {
		t.Errorf("the layout's index: %+v", manifest.Manifests)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the index: %v", err)
	}
	platforms, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if d := platforms.Manifests[0]; d.Platform == nil || d.Platform.String() != "linux/amd64" || d.ArtifactType != "" {
		t.Errorf("the index lists %+v", d)
	}
	blobs, err := os.ReadDir(filepath.Join(dir, "tegen", "blobs", "sha256"))
	if err != nil || len(blobs) != 7 { // index; manifest, configuration and layer; the same of the SBOM
		t.Errorf("%d blobs: %v, %v", len(blobs), blobs, err)
	}

	archive, err := tarball.ImageFromPath(filepath.Join(dir, "tegen-amd64.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(archive); err != nil {
		t.Errorf("the archive: %v", err)
	}
	names, err := tarball.LoadManifest(func() (io.ReadCloser, error) {
		return os.Open(filepath.Join(dir, "tegen-amd64.tar"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"registry.example:5000/acme/tegen:v1.2.3"}, names[0].RepoTags); diff != "" {
		t.Errorf("the archive's names (-want +got):\n%s", diff)
	}

	// Whoever may read the folder may read all of a layout.
	if err := filepath.WalkDir(filepath.Join(dir, "tegen"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode() != 0o644 {
			t.Errorf("%s has the mode %o, want 644", name, info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	first := tree(t, dir)
	written(t, b, dir, "registry.example:5000/acme")
	if diff := cmp.Diff(first, tree(t, dir)); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
}

// tree is every file below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unreadable is an image whose configuration cannot be read.
type unreadable struct{ v1.Image }

func (unreadable) RawConfigFile() ([]byte, error) { return nil, errors.New("on fire") }

// TestWriteFails: what was there stays where nothing new can be written.
func TestWriteFails(t *testing.T) {
	b := standard(t)
	dir := t.TempDir()
	written(t, b, dir, "")
	before := tree(t, dir)
	b.Platforms[0].SBOM = unreadable{b.Platforms[0].SBOM}
	reference, err := images.Reference("", "tegen", "v2")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(dir, reference); err == nil {
		t.Error("an SBOM that cannot be read was written")
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReference: archives name the image as the bundles that use it do.
func TestReference(t *testing.T) {
	for _, c := range []struct{ registry, tag, want string }{
		{"", "v1.2.3", "tegen:v1.2.3"},
		{"ghcr.io/acme", "v1.2.3", "ghcr.io/acme/tegen:v1.2.3"},
		{"registry.example:5000/", "dev", "registry.example:5000/tegen:dev"},
		{"ghcr.io/acme", "v1+dirty", ""},
		{"ghcr.io/Acme", "v1", ""},
		{"https://ghcr.io/acme", "v1", ""},
		{"", "", ""},
	} {
		got, err := images.Reference(c.registry, "tegen", c.tag)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("%q, %q: %q, %v; want %q", c.registry, c.tag, got, err, c.want)
		}
	}
}
