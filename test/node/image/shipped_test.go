package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
)

// shippedArchives writes an archive of each shipped image that holds an index alone.
func shippedArchives(t *testing.T, index string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, i := range images.All() {
		file, err := os.Create(filepath.Join(dir, i.Name+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(index, "NAME", i.Name)
		if err := layer.Write(file, []layer.Entry{layer.File("/index.json", 0o644, text)}); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestShipped: every image of this repository is read, under its own names; a folder that lacks one, or an archive that
// says no name, is refused.
func TestShipped(t *testing.T) {
	dir := shippedArchives(t, `{"manifests": [{"annotations": {"io.containerd.image.name": "lab/NAME:1"}},
		{"annotations": {"io.containerd.image.name": "lab/NAME@sha256:0"}}]}`)
	all, err := Shipped(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"lab/tegen-rendezvous:1", "lab/tegen-rendezvous@sha256:0"}
	i := slices.IndexFunc(all, func(a Archive) bool { return a.Image == Rendezvous })
	if len(all) != len(images.All()) || i < 0 {
		t.Fatalf("got %+v", all)
	}
	if diff := cmp.Diff(want, all[i].Names); diff != "" || all[i].File != filepath.Join(dir, "tegen-rendezvous.tar") {
		t.Errorf("%s (-want +got):\n%s", all[i].File, diff)
	}
	if _, err := Shipped(shippedArchives(t, `{"manifests": [{}]}`)); err == nil ||
		!strings.Contains(err.Error(), "it names no image") {
		t.Errorf("archives without names: %v", err)
	}
	if err := os.Remove(all[i].File); err != nil {
		t.Fatal(err)
	}
	if _, err := Shipped(dir); err == nil || !strings.Contains(err.Error(), "'make images' writes") {
		t.Errorf("a folder without tegen-rendezvous: %v", err)
	}
}
