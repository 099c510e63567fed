package oci

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Client talks to registries, with the credentials that 'docker login' or 'podman login' left behind.
type Client struct {
	options  []remote.Option
	patience time.Duration // of reading or publishing one artifact
}

// patience is how long a registry may take for all of one artifact. Without a limit, one that sends a byte now and then
// is waited for without end.
const patience = 10 * time.Minute

// NewClient returns a client that calls itself agent. Plain HTTP is never used where it was not asked for: the library
// alone would fall back to it for addresses of private networks.
func NewClient(agent string, plainHTTP bool) *Client {
	return &Client{
		options: []remote.Option{
			remote.WithAuthFromKeychain(authn.DefaultKeychain),
			remote.WithUserAgent(agent),
			remote.WithTransport(onlyTLS{remote.DefaultTransport, plainHTTP}),
		},
		patience: patience,
	}
}

var errPlainHTTP = errors.New("plain HTTP was not asked for")

// onlyTLS lets no request leave without TLS, not even one that a redirect or a registry's answer asks for.
type onlyTLS struct {
	next      http.RoundTripper
	plainHTTP bool
}

// RoundTrip implements http.RoundTripper.
func (t onlyTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !t.plainHTTP {
		return nil, errPlainHTTP
	}
	return t.next.RoundTrip(r)
}

// Push makes a tag name an artifact. The tag comes last: whoever finds it finds the provenance too. What the registry
// has already is not sent again.
func (c *Client) Push(ctx context.Context, to Reference, a *Artifact, p *Provenance) error {
	artifact, err := partial.CompressedToImage(a.image)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", to.ref.Context(), err)
	}
	provenance, err := partial.CompressedToImage(p.image)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", to.ref.Context(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	return c.push(ctx, to, artifact, provenance)
}

// PushIndex makes a tag name an index of images, after its images and what refers to them, such as their SBOMs.
func (c *Client) PushIndex(ctx context.Context, to Reference, index v1.ImageIndex, referrers []v1.Image) error {
	var all []pushable
	for _, r := range referrers {
		all = append(all, r)
	}
	return c.push(ctx, to, index, all...)
}

// pushable is an image or an index.
type pushable interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

func (c *Client) push(ctx context.Context, to Reference, tagged pushable, referrers ...pushable) error {
	repository := to.ref.Context()
	pusher, err := remote.NewPusher(append(c.options, remote.WithContext(ctx))...)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", repository, err)
	}
	for _, p := range append([]pushable{tagged}, referrers...) {
		digest, err := p.Digest()
		if err == nil {
			err = pusher.Push(ctx, repository.Digest(digest.String()), p)
		}
		if err != nil {
			return fmt.Errorf("publishing to %s: %w", repository, c.explain(err, to, "push to"))
		}
	}
	if err := pusher.Push(ctx, to.ref, tagged); err != nil {
		return fmt.Errorf("publishing to %s: %w", repository, c.explain(err, to, "push to"))
	}
	return nil
}

// explain adds to what a registry or the way to it said what somebody can do.
func (c *Client) explain(err error, at Reference, what string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s did not finish within %s: check the registry and the connection, and try again (%w)",
			at.registry(), c.patience, err)
	}
	return explain(err, at, what)
}

// explain is Client.explain of an error other than that of a limit.
func explain(err error, at Reference, what string) error {
	var (
		answer    *transport.Error
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("nobody known here signed the certificate of %s: name a file with its authority in "+
			"SSL_CERT_FILE (%w)", at.registry(), err)
	case errors.Is(err, errPlainHTTP) && !errors.Is(err, syscall.ECONNREFUSED): // HTTP is tried where HTTPS fails
		return fmt.Errorf("%s does not speak TLS, or leads to where it is not spoken: give --plain-http if that is "+
			"meant (%w)", at.registry(), err)
	case errors.As(err, &answer):
		return explainAnswer(answer, err, at, what)
	}
	return explainSilence(err, at)
}

// explainSilence is about a registry that gave no answer.
func explainSilence(err error, at Reference) error {
	var (
		unknown *net.DNSError
		network net.Error
	)
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("no address of %s is known here: correct the name (%w)", at.registry(), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s: start the registry, or correct its name and port (%w)", at.registry(),
			err)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%s does not answer: look whether it runs, and is reached from here (%w)", at.registry(), err)
	}
	return err
}

// explainAnswer is about a registry's own words.
func explainAnswer(answer *transport.Error, err error, at Reference, what string) error {
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s wants a login, or another one: run 'docker login %s' or 'podman login %s' (%w)",
			at.registry(), at.registry(), at.registry(), err)
	case http.StatusForbidden:
		return fmt.Errorf("this login may not %s %s: ask for the right, or use another (%w)", what, at.ref.Context(),
			err)
	case http.StatusNotFound:
		return fmt.Errorf("there is no %s: correct the name, or create it (%w)", at.ref.Name(), err)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s has had too many requests: try again later, or log in (%w)", at.registry(), err)
	}
	if answer.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s itself failed: its log says why; what is there is as it was (%w)", at.registry(), err)
	}
	return err
}
