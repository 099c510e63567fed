package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/internal/oci"
)

// registry is where images go.
type registry struct {
	prefix    string // a host, and a path where the registry wants one
	tag       string // empty: the layout's
	plainHTTP bool
}

// push pushes the layout in a folder, which is called like the image, and returns the image's reference.
func (r registry) push(ctx context.Context, dir string) (string, error) {
	l, err := open(dir)
	if err != nil {
		return "", fmt.Errorf("reading the layout %s, which 'make images' writes: %w", dir, err)
	}
	to, err := r.reference(filepath.Base(dir), l.tag)
	if err != nil {
		return "", err
	}
	digest, err := l.index.Digest()
	if err != nil {
		return "", err
	}
	if err := oci.NewClient("tegen", r.plainHTTP).PushIndex(ctx, to, l.index, l.referrers); err != nil {
		return "", err
	}
	return to.At(digest.String()), nil
}

// reference is where an image goes.
func (r registry) reference(image, tag string) (oci.Reference, error) {
	if r.tag != "" {
		tag = r.tag
	}
	if strings.Contains(r.prefix, "://") {
		return oci.Reference{}, fmt.Errorf("the registry %q: write it without a scheme, such as ghcr.io/acme", r.prefix)
	}
	ref, err := oci.ParseReference("oci://"+strings.TrimSuffix(r.prefix, "/")+"/"+image+":"+tag, r.plainHTTP)
	if err != nil {
		return ref, fmt.Errorf("the registry %q and the tag %q: %w", r.prefix, tag, err)
	}
	return ref, nil
}

// content is what a layout holds.
type content struct {
	tag       string
	index     v1.ImageIndex
	referrers []v1.Image
}

// open reads a layout as package images writes it: one index, and artifacts that refer to its images.
func open(dir string) (content, error) {
	var c content
	path, err := layout.FromPath(dir)
	if err != nil {
		return c, err
	}
	top, err := path.ImageIndex()
	if err != nil {
		return c, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return c, err
	}
	for _, d := range manifest.Manifests {
		if d.MediaType == types.OCIImageIndex && c.index == nil {
			c.tag = d.Annotations["org.opencontainers.image.ref.name"]
			if c.index, err = top.ImageIndex(d.Digest); err != nil {
				return c, err
			}
			continue
		}
		referrer, err := top.Image(d.Digest)
		if err != nil {
			return c, err
		}
		c.referrers = append(c.referrers, referrer)
	}
	if c.index == nil {
		return c, errors.New("it holds no index of images")
	}
	return c, nil
}
