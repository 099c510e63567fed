package images

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images/certificates"
	"github.com/tegen-dev/tegen/images/layer"
	"github.com/tegen-dev/tegen/images/notice"
	"github.com/tegen-dev/tegen/images/program"
	"github.com/tegen-dev/tegen/images/sbom"
)

// Options say what an image is built from.
type Options struct {
	Root          string            // of the repository
	Architectures []string          // of Linux
	Created       time.Time         // zero: when the commit was made
	Unstamped     bool              // see program.Target
	Link          map[string]string // the same
}

// Built is an image for several platforms.
type Built struct {
	Image
	Version   string // empty where the program is not stamped
	Index     v1.ImageIndex
	Platforms []Platform
}

// Platform is an image for one platform, and the artifact that describes it.
type Platform struct {
	Architecture string
	Image        v1.Image
	SBOM         v1.Image
	Size         int64 // of the image in a registry, without its SBOM
}

// Build compiles an image's program, and makes the image.
func (i Image) Build(ctx context.Context, o Options) (*Built, error) {
	work, err := os.MkdirTemp("", "tegen-images-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for programs: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // a folder for temporary files; the images hold what they need of it
	b := &Built{Image: i}
	b.Index = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var labels map[string]string
	for _, arch := range o.Architectures {
		p, info, err := i.platform(ctx, o, arch, work)
		if err != nil {
			return nil, fmt.Errorf("building the image %s for linux/%s: %w", i.Name, arch, err)
		}
		b.Platforms = append(b.Platforms, p)
		b.Version = info.Version
		labels = i.labels(info, o.created(info))
		b.Index = mutate.AppendManifests(b.Index, mutate.IndexAddendum{
			Add: p.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	b.Index = mutate.Annotations(b.Index, labels).(v1.ImageIndex)
	return b, nil
}

func (o Options) created(info program.Info) time.Time {
	if !o.Created.IsZero() {
		return o.Created
	}
	if !info.Time.IsZero() {
		return info.Time
	}
	return time.Unix(0, 0)
}

func (i Image) platform(ctx context.Context, o Options, arch, work string) (Platform, program.Info, error) {
	target := program.Target{
		Root: filepath.Join(o.Root, i.Module), Package: "./cmd/" + i.Name, OS: "linux", Arch: arch,
		Unstamped: o.Unstamped, Link: o.Link,
	}
	file := filepath.Join(work, i.Name+"-"+arch)
	if err := target.Build(ctx, file); err != nil {
		return Platform{}, program.Info{}, err
	}
	info, err := program.Read(file)
	if err != nil {
		return Platform{}, info, err
	}
	licenses, err := notice.Of(ctx, target)
	if err != nil {
		return Platform{}, info, fmt.Errorf("collecting licences: %w", err)
	}
	files, err := i.files(o.Root, file, licenses+certificates.Notice())
	if err != nil {
		return Platform{}, info, err
	}
	p := Platform{Architecture: arch}
	if p.Image, err = i.assemble(ctx, arch, files, i.labels(info, o.created(info)), o.created(info)); err != nil {
		return p, info, err
	}
	document, err := sbom.Of(info, License, "linux/"+arch, o.created(info), sbom.Beside{
		Name: "ca-certificates", Version: certificates.Version, License: "MPL-2.0",
		Source: "Mozilla's root certificates in " + certificates.Path + ", as the Go module " + certificates.Module +
			" has them",
	})
	if err != nil {
		return p, info, err
	}
	if p.SBOM, err = attach(document, p.Image, o.created(info)); err != nil {
		return p, info, fmt.Errorf("attaching the SBOM: %w", err)
	}
	p.Size, err = size(p.Image)
	return p, info, err
}

// assemble makes an image of one layer, since its files change together.
func (i Image) assemble(
	ctx context.Context, arch string, files []layer.Entry, labels map[string]string, created time.Time,
) (v1.Image, error) {
	content, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return layer.Stream(ctx, files), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	at := v1.Time{Time: created.UTC()}
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: at, RootFS: v1.RootFS{Type: "layers"}, Config: i.config(labels),
	})
	if err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: content, History: v1.History{Created: at, CreatedBy: "images/build"},
	})
	if err != nil {
		return nil, err
	}
	return plain{mutate.Annotations(img, labels).(v1.Image)}, nil
}

// plain is an image that an index does not call an artifact: the library would, by the type of its configuration.
type plain struct{ v1.Image }

// ArtifactType is what the library asks for.
func (plain) ArtifactType() (string, error) { return "", nil }

// size is what a registry keeps of an image.
func size(img v1.Image) (int64, error) {
	m, err := img.Manifest()
	if err != nil {
		return 0, err
	}
	total := m.Config.Size
	for _, l := range m.Layers {
		total += l.Size
	}
	return total, nil
}

// Check returns an error where an image is larger than it may be.
func (b *Built) Check() error {
	for _, p := range b.Platforms {
		if p.Size > b.MaxSize {
			return fmt.Errorf("the image %s for linux/%s has %.1f MB, and may have %d: look at what was linked since, "+
				"or raise its limit in images/images.go", b.Name, p.Architecture, float64(p.Size)/1e6, b.MaxSize/1e6)
		}
	}
	return nil
}

// Tag is the version as a tag can say it, or dev.
func (b *Built) Tag() string { return cmp.Or(strings.ReplaceAll(b.Version, "+", "_"), "dev") }
