package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images/layer"
)

// blob is a layer that is not compressed: nothing carries it further than this machine. It is read twice, for what
// describes it and into the archive, because it may be larger than the memory.
type blob struct {
	open func() (io.ReadCloser, error)
	hash v1.Hash
	size int64
}

var _ v1.Layer = blob{}

func (b blob) Digest() (v1.Hash, error)             { return b.hash, nil }
func (b blob) DiffID() (v1.Hash, error)             { return b.hash, nil }
func (b blob) Compressed() (io.ReadCloser, error)   { return b.open() }
func (b blob) Uncompressed() (io.ReadCloser, error) { return b.open() }
func (b blob) Size() (int64, error)                 { return b.size, nil }
func (b blob) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

func describe(open func() (io.ReadCloser, error)) (b blob, err error) {
	content, err := open()
	if err != nil {
		return b, err
	}
	defer content.Close()
	b.open = open
	b.hash, b.size, err = v1.SHA256(content)
	return b, err
}

// blob is the layer, from the first of the archives that have it for theirs, or else anew.
func (l part) blob(ctx context.Context, archives []string) (blob, error) {
	if err := context.Cause(ctx); err != nil {
		return blob{}, err
	}
	if len(archives) == 0 {
		entries, err := l.entries()
		if err != nil {
			return blob{}, err
		}
		return describe(func() (io.ReadCloser, error) { return layer.Stream(entries), nil })
	}
	old, err := tarball.ImageFromPath(archives[0], nil)
	if err != nil {
		return blob{}, fmt.Errorf("reading %s: %w", archives[0], err)
	}
	layers, err := old.Layers()
	if err != nil {
		return blob{}, fmt.Errorf("reading %s: %w", archives[0], err)
	}
	return describe(layers[0].Uncompressed)
}

// configFile says how a container of the image starts.
func (r recipe) configFile() *v1.ConfigFile {
	return &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
		Config: r.config,
	}
}

// assemble is an image of layers.
func (r recipe) assemble(layers []v1.Layer) (v1.Image, error) {
	img, err := mutate.ConfigFile(empty.Image, r.configFile())
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, layers...)
}

func (r recipe) archive(file *os.File, img v1.Image) error {
	reference, err := name.NewTag(Reference(r.image))
	if err != nil {
		return err
	}
	return tarball.Write(reference, img, file)
}
