package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/tegen-dev/tegen/images"
)

// TestArchive: the archive of all platforms has the digest that a registry has, under the names by which a kubelet asks
// for the image, and whatever that digest leads to and no more.
func TestArchive(t *testing.T) {
	dir := sample(t)
	b := build(t, images.Options{Root: dir, Systems: images.Systems()[:2]})
	for registry, repository := range map[string]string{
		"": "docker.io/library/tegen", "registry.example:5000/acme": "registry.example:5000/acme/tegen",
	} {
		out, unpacked := t.TempDir(), t.TempDir()
		written(t, *b, out, registry)
		unpack(t, filepath.Join(out, "tegen.tar"), unpacked)
		top, err := layout.ImageIndexFromPath(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := top.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range manifest.Manifests {
			if d.Digest.String() != digest(t, b.Index) {
				t.Errorf("the archive holds %s, a registry %s", d.Digest, digest(t, b.Index))
			}
			names = append(names, d.Annotations["io.containerd.image.name"])
		}
		want := []string{repository + ":v1.2.3", repository + "@" + digest(t, b.Index)}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		index, err := top.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("the index: %v", err)
		}
		blobs, err := os.ReadDir(filepath.Join(unpacked, "blobs", "sha256"))
		if err != nil || len(blobs) != 7 { // index; manifest, configuration and layer of two platforms
			t.Errorf("%d blobs: %v, %v", len(blobs), blobs, err)
		}
	}
}

// unpack unpacks an archive.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is read only
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.FileInfo().IsDir() {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, h.Name), string(data))
	}
}
