package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// registry is where images go.
type registry struct {
	prefix    string // a host, and a path where the registry wants one
	tag       string // empty: the layout's
	plainHTTP bool
	keychain  authn.Keychain
	transport http.RoundTripper
}

// push pushes the layout in a folder, which is called like the image, and returns the image's reference. The tag comes
// last: whoever pulls by it finds all platforms and their SBOMs.
func (r registry) push(ctx context.Context, dir string) (string, error) {
	l, err := open(dir)
	if err != nil {
		return "", fmt.Errorf("reading the layout %s, which 'make images' writes: %w", dir, err)
	}
	tag, err := r.reference(filepath.Base(dir), l.tag)
	if err != nil {
		return "", err
	}
	digest, err := l.index.Digest()
	if err != nil {
		return "", err
	}
	if err := r.write(ctx, tag, digest, l); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, r.explain(tag, err))
	}
	return tag.String() + "@" + digest.String(), nil
}

func (r registry) write(ctx context.Context, tag name.Tag, digest v1.Hash, l content) error {
	pusher, err := remote.NewPusher(remote.WithContext(ctx), remote.WithAuthFromKeychain(r.keychain),
		remote.WithTransport(r.roundTripper()), remote.WithUserAgent("tegen"))
	if err != nil {
		return err
	}
	repository := tag.Context()
	if err := pusher.Push(ctx, repository.Digest(digest.String()), l.index); err != nil {
		return err
	}
	for _, referrer := range l.referrers {
		d, err := referrer.Digest()
		if err != nil {
			return err
		}
		if err := pusher.Push(ctx, repository.Digest(d.String()), referrer); err != nil {
			return err
		}
	}
	return pusher.Push(ctx, tag, l.index)
}

// reference is where an image goes.
func (r registry) reference(image, tag string) (name.Tag, error) {
	const form = "a host and a path, such as ghcr.io/acme or registry.example:5000"
	if strings.Contains(r.prefix, "://") {
		return name.Tag{}, fmt.Errorf("the registry %q: write it without a scheme, as %s", r.prefix, form)
	}
	if r.tag != "" {
		tag = r.tag
	}
	options := []name.Option{name.StrictValidation}
	if r.plainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.NewTag(strings.TrimSuffix(r.prefix, "/")+"/"+image+":"+tag, options...)
	if err != nil {
		return ref, fmt.Errorf("the registry %q and the tag %q: write %s, and a tag of letters, digits, '.', '_' and "+
			"'-': %w", r.prefix, tag, form, err)
	}
	return ref, nil
}

// errPlainHTTP is for what would go over the network for all to read and to change.
var errPlainHTTP = errors.New("refused to speak plain HTTP: with --plain-http (PLAIN_HTTP=1) credentials and images " +
	"go unencrypted")

// encrypted refuses plain HTTP, which the library speaks to what looks like a registry of one's own, and to which a
// registry may redirect.
type encrypted struct{ http.RoundTripper }

func (e encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errPlainHTTP
	}
	return e.RoundTripper.RoundTrip(r)
}

func (r registry) roundTripper() http.RoundTripper {
	if r.plainHTTP {
		return r.transport
	}
	return encrypted{r.transport}
}

// explain adds what to do about an error of a registry.
func (r registry) explain(tag name.Tag, err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: sign in with 'docker login %[2]s' or 'podman login %[2]s'", err, tag.RegistryStr())
	case http.StatusForbidden:
		return fmt.Errorf("%w: who is signed in may not write to %s", err, tag.Context())
	}
	return err
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
