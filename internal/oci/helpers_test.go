package oci

import (
	"bytes"
	"encoding/json"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// put pushes any image, as another program might.
func put(t *testing.T, to Reference, img *image) {
	t.Helper()
	var err error
	img.descriptor.Size = int64(len(img.manifest))
	if img.descriptor.Digest, _, err = v1.SHA256(bytes.NewReader(img.manifest)); err != nil {
		t.Fatal(err)
	}
	pushed, err := partial.CompressedToImage(img)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to.ref, pushed); err != nil {
		t.Fatal(err)
	}
}

func manifestOf(t *testing.T, a *Artifact) (m v1.Manifest) {
	t.Helper()
	if err := json.Unmarshal(a.image.manifest, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
