package oci

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

const scheme = "oci://"

// Reference is where an artifact goes, or lies.
type Reference struct {
	ref name.Reference
}

// ParseReference reads oci://registry/repository:tag, or with a digest in the tag's place. Plain HTTP is for a registry
// without TLS.
func ParseReference(text string, plainHTTP bool) (Reference, error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return Reference{}, fmt.Errorf("must begin with %s, as in %sregistry.example/team/jobs:eks, not %q", scheme,
			scheme, text)
	}
	registry, path, _ := strings.Cut(rest, "/")
	switch {
	case strings.Contains(registry, "@"):
		return Reference{}, errors.New("must hold no user and no password: log in with 'docker login', and write " +
			"oci://registry/repository:tag")
	case path == "" || !strings.ContainsAny(registry, ".:") && registry != "localhost":
		return Reference{}, fmt.Errorf("must name a registry and a repository in it, as in "+
			"%sregistry.example/team/jobs:eks, not %q", scheme, text)
	case !strings.ContainsAny(path, ":@"):
		return Reference{}, fmt.Errorf("has no tag: say which, such as %s:eks", text)
	}
	options := []name.Option{name.StrictValidation}
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(rest, options...)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is no reference: a repository has lower-case letters, digits and . _ - /, "+
			"a tag letters, digits and . _ -, as in %sregistry.example/team/jobs:eks", text, scheme)
	}
	if tag, ok := ref.(name.Tag); ok && tag.TagStr() == "latest" {
		return Reference{}, fmt.Errorf("the tag latest says nothing of what is there: name a place or a release, "+
			"such as %s%s:eks", scheme, tag.Context())
	}
	return Reference{ref: ref}, nil
}

// IsDigest says that the reference names one artifact for ever, so that none can be pushed to it.
func (r Reference) IsDigest() bool {
	_, ok := r.ref.(name.Digest)
	return ok
}

// At names the artifact of a digest, as other tools of registries read it: registry/repository:tag@sha256:….
func (r Reference) At(digest string) string {
	if r.IsDigest() {
		return r.ref.Name()
	}
	return r.ref.Name() + "@" + digest
}

func (r Reference) registry() string { return r.ref.Context().RegistryStr() }

// String is the reference as other tools of registries read it.
func (r Reference) String() string { return r.ref.Name() }
