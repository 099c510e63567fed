// Package oci packs files into an artifact that both Flux and Argo CD take, pushes it to a registry, and compares one
// that is there with what would be pushed. It is the one package of the command that uses the network, and it does so
// in Push and Verify alone. The same files and origin always give the same digest: an artifact holds no time, owner,
// permission or order of its maker.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/internal/origin"
)

const (
	// LayerType is the one type of layer that both take as they are installed. Argo CD refuses what is not in a list
	// (--oci-layer-media-types of cmd/argocd-repo-server/commands/argocd_repo_server.go), and Flux's own type is not
	// in it; Flux takes the first layer of whatever type (selectLayer of source-controller's
	// internal/controller/ocirepository_controller.go).
	LayerType = types.OCILayer
	// ArtifactType says what an artifact is to those who list a registry.
	ArtifactType = "application/vnd.tegen.manifests.v1"

	// configType is that of the configuration of what is no image, which is always {} (OCI image specification 1.1).
	// Argo CD takes whatever ends in tar or tar+gzip for content.
	configType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// Annotations of the OCI image specification, which Flux copies into the status of its OCIRepository, and Argo CD
// shows.
const (
	annotationCreated  = "org.opencontainers.image.created"
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
	created            = "1970-01-01T00:00:00Z" // as 'flux push artifact --reproducible' writes it
)

// MaxBytes bounds the files of an artifact, packed or not. Argo CD unpacks 1 GiB by default.
const MaxBytes = 256 << 20

// File is one file of an artifact.
type File struct {
	Path    string // with slashes, below the root
	Content []byte
}

// Artifact is what is pushed: one layer with all files.
type Artifact struct {
	files  []File
	origin origin.Origin
	image  *image
}

// New packs files.
func New(files []File, from origin.Origin) (*Artifact, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	layer, err := pack(files)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	img, err := newImage(v1.Manifest{
		ArtifactType: ArtifactType,
		Annotations: map[string]string{
			annotationCreated: created, annotationSource: from.Source, annotationRevision: from.Revision,
		},
	}, static.NewLayer(layer, LayerType), nil)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return &Artifact{files: files, origin: from, image: img}, nil
}

// Digest is "sha256:…" of what is pushed.
func (a *Artifact) Digest() string { return a.image.descriptor.Digest.String() }

// pack is a compressed archive of sorted files. Directories have no entries: both unpackers make them.
func pack(files []File) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.Path, Size: int64(len(f.Content)), Mode: 0o644, ModTime: time.Unix(0, 0),
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if _, err := archive.Write(f.Content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// image is a manifest with the one layer that it names, in the form in which the registry's client pushes images.
type image struct {
	manifest   []byte
	layer      v1.Layer
	descriptor v1.Descriptor // of the manifest
}

// newImage completes a manifest of which artifact type, annotations and subject are given.
func newImage(m v1.Manifest, layer v1.Layer, annotations map[string]string) (*image, error) {
	content, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	content.Annotations = annotations
	config, err := partial.Descriptor(static.NewLayer(emptyConfig(), configType))
	if err != nil {
		return nil, err
	}
	m.SchemaVersion, m.MediaType, m.Config, m.Layers = 2, types.OCIManifestSchema1, *config, []v1.Descriptor{*content}
	i := &image{layer: layer}
	if i.manifest, err = json.Marshal(m); err != nil {
		return nil, err
	}
	i.descriptor = v1.Descriptor{MediaType: m.MediaType, Size: int64(len(i.manifest))}
	i.descriptor.Digest, _, err = v1.SHA256(bytes.NewReader(i.manifest))
	return i, err
}

// Attach makes an artifact of a document about an image. A registry lists it as a referrer of the image.
func Attach(document []byte, mediaType types.MediaType, subject v1.Image, created time.Time) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	i, err := newImage(v1.Manifest{
		ArtifactType: string(mediaType), Subject: about,
		Annotations: map[string]string{annotationCreated: created.UTC().Format(time.RFC3339)},
	}, static.NewLayer(document, mediaType), nil)
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(i)
}

func emptyConfig() []byte { return []byte("{}") }

// RawConfigFile implements partial.CompressedImageCore, as all that follow.
func (i *image) RawConfigFile() ([]byte, error) { return emptyConfig(), nil }

// MediaType is that of the manifest.
func (i *image) MediaType() (types.MediaType, error) { return i.descriptor.MediaType, nil }

// RawManifest returns the bytes that the digest is of.
func (i *image) RawManifest() ([]byte, error) { return i.manifest, nil }

// LayerByDigest returns the one layer.
func (i *image) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if is, err := i.layer.Digest(); err != nil || is != h {
		return nil, fmt.Errorf("there is no layer %s", h)
	}
	return i.layer, nil
}
