package node

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/node/image"
)

// builtDigest is that of an image which 'make images' has written, as a registry would have it.
func builtDigest(t *testing.T, name string) string {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(root, "dist/images", name))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Manifests[0].Digest.String()
}

// checkBuilt holds that containers of an image of this repository run, by their digest, what was built of it.
func checkBuilt(t *testing.T, name string, pods []corev1.Pod) {
	t.Helper()
	want, seen := builtDigest(t, name), 0
	for i := range pods {
		status := &pods[i].Status
		for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
			if image.For(c.Image) != name || c.ImageID == "" { // none before it is there
				continue
			}
			seen++
			if _, got, _ := strings.Cut(c.ImageID, "@"); got != want {
				t.Errorf("%s of %s runs %s, and %s was built", c.Name, pods[i].Name, c.ImageID, want)
			}
		}
	}
	if seen == 0 {
		t.Errorf("no container of %d pods runs %s", len(pods), name)
	}
}
