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

	"github.com/tegen-dev/tegen/images/layer"
	"github.com/tegen-dev/tegen/internal/oci"
)

// Options are the inputs of an image.
type Options struct {
	Root          string            // of the repository
	Architectures []string          // of Linux
	Created       time.Time         // default: the time of the commit
	Link          map[string]string // see Target
}

// Built is an image for several platforms.
type Built struct {
	Image
	Version   string // empty if the program records none
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
	defer os.RemoveAll(work) //nolint:errcheck // temporary files
	b := &Built{Image: i, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	var labels map[string]string
	for _, arch := range o.Architectures {
		target := Target{Root: o.Root, Name: i.Name, System: System{"linux", arch}, Link: o.Link}
		program, err := target.Build(ctx, filepath.Join(work, arch))
		if err != nil {
			return nil, fmt.Errorf("building the image %s: %w", i.Name, err)
		}
		if o.Created.IsZero() {
			o.Created = program.Time
		}
		if o.Created.IsZero() {
			o.Created = time.Unix(0, 0)
		}
		labels = i.labels(program, o.Created)
		p, err := i.platform(ctx, o, program, labels)
		if err != nil {
			return nil, fmt.Errorf("building the image %s for linux/%s: %w", i.Name, arch, err)
		}
		b.Platforms = append(b.Platforms, p)
		b.Version = program.Version
		b.Index = mutate.AppendManifests(b.Index, mutate.IndexAddendum{
			Add: p.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	b.Index = mutate.Annotations(b.Index, labels).(v1.ImageIndex)
	return b, nil
}

func (i Image) platform(
	ctx context.Context, o Options, program Program, labels map[string]string,
) (p Platform, err error) {
	p.Architecture = program.Arch
	notice, err := program.Notice(ctx)
	if err != nil {
		return p, err
	}
	files, err := i.files(o.Root, program, notice)
	if err != nil {
		return p, err
	}
	if p.Image, err = i.assemble(program.Arch, files, labels, o.Created); err != nil {
		return p, err
	}
	document, err := program.SBOM(o.Created, certificatesPackage())
	if err != nil {
		return p, err
	}
	if p.SBOM, err = oci.Attach(document, sbomType, p.Image, o.Created); err != nil {
		return p, err
	}
	m, err := p.Image.Manifest()
	if err != nil {
		return p, err
	}
	p.Size = m.Config.Size + m.Layers[0].Size
	return p, nil
}

// labels say where an image is from. Unknown ones are left out.
func (i Image) labels(p Program, created time.Time) map[string]string {
	source := "https://" + p.Main.Path
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":         i.Name,
		prefix + "description":   i.Description,
		prefix + "source":        source,
		prefix + "documentation": source + "/blob/main/docs/images.md",
		prefix + "licenses":      License,
		prefix + "created":       created.UTC().Format(time.RFC3339),
	}
	if p.Version != "" {
		labels[prefix+"version"] = p.Version
	}
	if p.Revision != "" {
		labels[prefix+"revision"] = p.Revision
	}
	return labels
}

// assemble makes an image of one layer, since its files change together.
func (i Image) assemble(
	arch string, files []layer.Entry, labels map[string]string, created time.Time,
) (v1.Image, error) {
	content, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return layer.Stream(files), nil },
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

// plain is an image without an artifact type. The library would derive one from the configuration's media type.
type plain struct{ v1.Image }

// ArtifactType implements an interface of the library.
func (plain) ArtifactType() (string, error) { return "", nil }

// Check returns an error if an image exceeds its limit.
func (b *Built) Check() error {
	for _, p := range b.Platforms {
		if p.Size > b.MaxSize {
			return fmt.Errorf("the image %s for linux/%s has %.1f MB, and may have %d: look at what was linked since, "+
				"or raise its limit in images/images.go", b.Name, p.Architecture, float64(p.Size)/1e6, b.MaxSize/1e6)
		}
	}
	return nil
}

// Tag is the version in the characters of a tag, or dev.
func (b *Built) Tag() string { return cmp.Or(strings.ReplaceAll(b.Version, "+", "_"), "dev") }
