package images

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
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
	Root    string            // of the repository
	Systems []System          // there are images for those with Linux
	Created time.Time         // default: the time of the commit
	Link    map[string]string // see Target
}

// Built is an image for several platforms.
type Built struct {
	Image
	Version, Revision string // empty if the program records none
	Index             v1.ImageIndex
	Platforms         []Platform
}

// Platform is an image for one platform, and the artifact that describes it.
type Platform struct {
	System
	Image v1.Image
	SBOM  v1.Image
	Size  int64 // of the image in a registry, without its SBOM
}

// Build compiles an image's program, and makes the image.
func (i Image) Build(ctx context.Context, o Options) (*Built, error) {
	work, err := os.MkdirTemp("", "tegen-images-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for programs: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // temporary files
	b := &Built{Image: i, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, s := range o.Systems {
		if s.OS != "linux" {
			continue
		}
		t := Target{Root: o.Root, Name: i.Name, System: s, Link: o.Link}
		if err := b.add(ctx, t, o.Created, filepath.Join(work, s.Arch)); err != nil {
			return nil, fmt.Errorf("building the image %s for %s: %w", i.Name, s, err)
		}
	}
	return b, nil
}

// add adds the image of a target, whose program it compiles into a file.
func (b *Built) add(ctx context.Context, t Target, created time.Time, file string) error {
	p, err := t.Build(ctx, file)
	if err != nil {
		return err
	}
	notice, err := t.Notice(ctx)
	if err != nil {
		return err
	}
	if created.IsZero() {
		created = p.Time
	}
	labels := b.labels(p, created)
	img, err := b.assemble(p, notice, labels, v1.Time{Time: created.UTC()})
	if err != nil {
		return err
	}
	document, err := p.SBOM(created, certificatesPackage())
	if err != nil {
		return err
	}
	sbom, err := oci.Attach(document, sbomType, img, created)
	if err != nil {
		return err
	}
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	size := m.Config.Size + m.Layers[0].Size
	if size > b.MaxSize {
		return fmt.Errorf("it has %.1f MB, and may have %d: look at what was linked since, or raise its limit in "+
			"images/images.go", float64(size)/1e6, b.MaxSize/1e6)
	}
	b.Version, b.Revision = p.Version, p.Revision
	b.Platforms = append(b.Platforms, Platform{t.System, img, sbom, size})
	b.Index = mutate.AppendManifests(b.Index, mutate.IndexAddendum{
		Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.OS, Architecture: t.Arch}},
	})
	b.Index = mutate.Annotations(b.Index, labels).(v1.ImageIndex)
	return nil
}

// labels are the origin of an image, without what its program does not record.
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
		prefix + "version":       p.Version,
		prefix + "revision":      p.Revision,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// assemble makes an image of one layer, since its files change together.
func (i Image) assemble(p Program, notice string, labels map[string]string, created v1.Time) (v1.Image, error) {
	files := i.files(p, notice)
	content, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return layer.Stream(files), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Arch, Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       User,
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint: []string{files[0].Path},
			Cmd:        i.Command,
			Labels:     labels,
		},
	})
	if err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: content, History: v1.History{Created: created, CreatedBy: "images/build"},
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

// Tag is the version in the characters of a tag, or dev.
func (b *Built) Tag() string { return cmp.Or(strings.ReplaceAll(b.Version, "+", "_"), "dev") }
