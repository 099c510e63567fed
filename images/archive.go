package images

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images/layer"
)

// imageName is the annotation by which containerd names what it imports.
const imageName = "io.containerd.image.name"

// archive writes all platforms of the image as a file that containerd imports, and so kind, with the digests that a
// registry has. SBOMs stay out, since containerd would unpack them.
func (b *Built) archive(to string, ref name.Tag) (err error) {
	top, err := b.named(ref)
	if err != nil {
		return err
	}
	entries := []layer.Entry{
		layer.File("/oci-layout", 0o644, `{"imageLayoutVersion":"1.0.0"}`),
		{Path: "/index.json", Mode: 0o644, Data: top},
	}
	blobs, err := b.blobs()
	if err != nil {
		return err
	}
	for hash, data := range blobs {
		entries = append(entries, layer.Entry{
			Path: "/blobs/" + hash.Algorithm + "/" + hash.Hex, Mode: 0o644, Data: data,
		})
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(layer.Write(context.Background(), file, layer.WithFolders(entries)), file.Close())
}

// named is an index that names the image twice, by tag and by digest: pods may use either, and containerd finds no
// image by a name that it was not given.
func (b *Built) named(ref name.Tag) ([]byte, error) {
	full, err := reference.ParseNormalizedNamed(ref.String()) // docker.io/library/tegen:dev, as the kubelet asks for it
	if err != nil {
		return nil, err
	}
	about, err := partial.Descriptor(b.Index)
	if err != nil {
		return nil, err
	}
	byTag := v1.Descriptor{MediaType: about.MediaType, Digest: about.Digest, Size: about.Size}
	byDigest := byTag
	byTag.Annotations = map[string]string{imageName: full.String(), refName: ref.TagStr()}
	byDigest.Annotations = map[string]string{imageName: full.Name() + "@" + about.Digest.String()}
	return json.Marshal(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{byTag, byDigest},
	})
}

// blobs are the index and all that it leads to.
func (b *Built) blobs() (map[v1.Hash][]byte, error) {
	all := map[v1.Hash][]byte{}
	add := func(hash v1.Hash, err error, data []byte, err2 error) error {
		all[hash] = data
		return errors.Join(err, err2)
	}
	digest, err := b.Index.Digest()
	data, err2 := b.Index.RawManifest()
	errs := []error{add(digest, err, data, err2)}
	for _, p := range b.Platforms {
		digest, err := p.Image.Digest()
		data, err2 := p.Image.RawManifest()
		config, err3 := p.Image.ConfigName()
		text, err4 := p.Image.RawConfigFile()
		layers, err5 := p.Image.Layers()
		errs = append(errs, add(digest, err, data, err2), add(config, err3, text, err4), err5)
		for _, l := range layers {
			digest, err := l.Digest()
			data, err2 := compressed(l)
			errs = append(errs, add(digest, err, data, err2))
		}
	}
	return all, errors.Join(errs...)
}

// compressed is a layer as a registry has it.
func compressed(l v1.Layer) (_ []byte, err error) {
	content, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return io.ReadAll(content)
}
