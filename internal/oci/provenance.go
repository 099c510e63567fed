package oci

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/internal/provenance"
)

// provenanceType is both the type of the statement and what it is listed as.
const provenanceType = types.MediaType("application/vnd.in-toto+json")

const buildType = "https://github.com/tegen-dev/tegen/blob/main/docs/publish.md#provenance"

// Provenance is what says of an artifact what it was made of. A registry lists it as a referrer of the artifact.
type Provenance struct {
	statement provenance.Statement
	image     *image
}

// NewProvenance states that this version of tegen made an artifact, for a repository, of a commit and of files, each of
// which is there with its digest. It is not signed.
func NewProvenance(a *Artifact, to Reference, version string) (*Provenance, error) {
	about := provenance.Resource{
		Name: to.ref.Context().Name(), Digest: map[string]string{"sha256": a.image.descriptor.Digest.Hex},
	}
	p := &Provenance{statement: provenance.New(buildType, []provenance.Resource{about},
		map[string]string{"source": a.origin.Source, "revision": a.origin.Revision},
		map[string]string{"tegen": version})}
	p.statement.DependOn(provenance.Commit(a.origin.Source, a.origin.Commit()))
	for _, f := range a.files {
		p.statement.DependOn(provenance.File(f.Path, f.Content))
	}
	text, err := json.Marshal(p.statement)
	if err != nil {
		return nil, fmt.Errorf("writing provenance: %w", err)
	}
	p.image, err = newImage(v1.Manifest{
		ArtifactType: string(provenanceType),
		Subject:      &a.image.descriptor,
		Annotations:  map[string]string{annotationCreated: created},
	}, static.NewLayer(text, provenanceType), map[string]string{"in-toto.io/predicate-type": provenance.PredicateType})
	if err != nil {
		return nil, fmt.Errorf("writing provenance: %w", err)
	}
	return p, nil
}

// Digest is "sha256:…" of what is pushed.
func (p *Provenance) Digest() string { return p.image.descriptor.Digest.String() }

// sameMaking says whether another statement about the same artifact names the same inputs. By which version of tegen it
// was made may differ.
func sameMaking(s, other *provenance.Statement) bool {
	core := func(s *provenance.Statement) string {
		var digests []map[string]string
		for _, subject := range s.Subject {
			digests = append(digests, subject.Digest)
		}
		text, err := json.Marshal([]any{digests, s.PredicateType, s.Predicate.BuildDefinition})
		if err != nil {
			return err.Error() // strings and maps of them cannot fail
		}
		return string(text)
	}
	return core(s) == core(other)
}
