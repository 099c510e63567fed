package images

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images/sbom"
)

// artifact is a document in the form of an image: a manifest whose subject is the image that the document is about. A
// registry lists it among that image's referrers.
type artifact struct {
	manifest []byte
	document v1.Layer
}

// empty is the configuration of what has none.
const emptyConfig = "{}"

// attach makes an artifact of an SBOM.
func attach(document []byte, subject v1.Image, created time.Time) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	// What a referrer names of its subject, no more.
	about = &v1.Descriptor{MediaType: about.MediaType, Digest: about.Digest, Size: about.Size}
	content := static.NewLayer(document, sbom.MediaType)
	layer, err := partial.Descriptor(content)
	if err != nil {
		return nil, err
	}
	config, err := partial.Descriptor(static.NewLayer([]byte(emptyConfig), "application/vnd.oci.empty.v1+json"))
	if err != nil {
		return nil, err
	}
	config.Data = []byte(emptyConfig)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  sbom.MediaType,
		Config:        *config,
		Layers:        []v1.Descriptor{*layer},
		Subject:       about,
		Annotations:   map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest, content})
}

func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) RawConfigFile() ([]byte, error)      { return []byte(emptyConfig), nil }

func (a artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if digest, err := a.document.Digest(); err != nil || digest != h {
		return nil, fmt.Errorf("the artifact has no blob %s", h)
	}
	return a.document, nil
}
