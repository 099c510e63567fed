package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/internal/oci"
)

// image is the name of a built image in a registry.
type image struct{ repository, tagged, digest string }

// String is the name to pull: the digest counts, the tag is for people.
func (i image) String() string { return i.tagged + "@" + i.digest }

// buildImages writes the images for Linux.
func (o *options) buildImages(ctx context.Context) error {
	for _, i := range o.images {
		_, b, err := o.writeImage(ctx, i, o.dir, nil)
		if err != nil {
			return err
		}
		if b.Version == "" {
			o.progress.Print("  without a commit: there is no .git, or this is a worktree, which the go command " +
				"cannot read; release from a clone")
		}
	}
	return nil
}

// writeImage builds an image, writes it into a folder, and prints what its platforms take in a registry.
func (o *options) writeImage(
	ctx context.Context, i images.Image, dir string, link map[string]string,
) (named image, b *images.Built, err error) {
	b, err = i.Build(ctx, images.Options{Root: o.root, Systems: o.systems, Created: o.created, Link: link})
	if err != nil {
		return named, b, err
	}
	ref, err := images.Reference(o.registry, i.Name, cmp.Or(o.tag, b.Tag()))
	if err != nil {
		return named, b, err
	}
	digest, err := b.Index.Digest()
	if err != nil {
		return named, b, err
	}
	named = image{ref.Context().Name(), ref.String(), digest.String()}
	sizes := ""
	for _, p := range b.Platforms {
		sizes += fmt.Sprintf(", %s %.1f MB", p.Arch, float64(p.Size)/1e6)
	}
	o.progress.Print("image ", named, sizes)
	return named, b, b.Write(dir, ref)
}

// pushImages pushes images that were written, with their SBOMs, and prints the reference and digest of each. It uses
// the credentials of docker or podman.
func (o *options) pushImages(ctx context.Context) error {
	if o.registry == "" {
		return errors.New("no registry: make push REGISTRY=ghcr.io/acme")
	}
	for _, i := range o.images {
		dir := filepath.Join(o.dir, i.Name)
		tag, index, referrers, err := open(dir)
		if err != nil {
			return fmt.Errorf("reading the layout %s, which 'make images' writes: %w", dir, err)
		}
		name := strings.TrimSuffix(o.registry, "/") + "/" + i.Name + ":" + cmp.Or(o.tag, tag)
		to, err := oci.ParseReference("oci://"+name, o.plainHTTP)
		if err != nil {
			return fmt.Errorf("the registry %q: %w", o.registry, err)
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		if err := oci.NewClient("tegen", o.plainHTTP).PushIndex(ctx, to, index, referrers); err != nil {
			return err
		}
		o.progress.Print(to.At(digest.String()))
	}
	return nil
}

// open reads a layout as package images writes it: an index, and artifacts that refer to its images.
func open(dir string) (tag string, index v1.ImageIndex, referrers []v1.Image, err error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", nil, nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return "", nil, nil, err
	}
	indexes, err := partial.FindIndexes(top, match.MediaTypes(string(types.OCIImageIndex)))
	if err != nil || len(indexes) == 0 {
		return "", nil, nil, cmp.Or(err, errors.New("it holds no index of images"))
	}
	referrers, err = partial.FindImages(top, match.MediaTypes(string(types.OCIManifestSchema1)))
	return manifest.Manifests[0].Annotations[images.RefName], indexes[0], referrers, err
}
