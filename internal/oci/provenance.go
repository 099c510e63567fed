package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// provenanceType is both the type of the statement and what it is listed as.
const provenanceType = types.MediaType("application/vnd.in-toto+json")

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/tegen-dev/tegen/blob/main/docs/publish.md#provenance"
	builder       = "https://github.com/tegen-dev/tegen"
)

// statement is an in-toto statement about one artifact, whose predicate is SLSA's provenance
// (https://slsa.dev/spec/v1.0/provenance). It has no time in it, so that it is reproducible too.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string             `json:"buildType"`
	ExternalParameters   externalParameters `json:"externalParameters"`
	ResolvedDependencies []resource         `json:"resolvedDependencies"`
}

type externalParameters struct {
	Source   string `json:"source"`
	Revision string `json:"revision"`
}

type runDetails struct {
	Builder struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version"`
	} `json:"builder"`
}

// Provenance is what says of an artifact what it was made of. A registry lists it as a referrer of the artifact.
type Provenance struct {
	statement statement
	image     *image
}

// NewProvenance states that this version of tegen made an artifact, for a repository, of a commit and of files, each of
// which is there with its digest. It is not signed.
func NewProvenance(a *Artifact, to Reference, version string) (*Provenance, error) {
	p := &Provenance{statement: statement{
		Type:          statementType,
		PredicateType: predicateType,
		Subject: []resource{{
			Name: to.ref.Context().Name(), Digest: map[string]string{"sha256": a.image.descriptor.Digest.Hex},
		}},
	}}
	made := &p.statement.Predicate.BuildDefinition
	made.BuildType = buildType
	made.ExternalParameters = externalParameters{Source: a.origin.Source, Revision: a.origin.Revision}
	made.ResolvedDependencies = append(made.ResolvedDependencies, resource{
		URI: "git+" + a.origin.Source, Digest: map[string]string{"gitCommit": a.origin.Commit()},
	})
	for _, f := range a.files {
		sum := sha256.Sum256(f.Content)
		made.ResolvedDependencies = append(made.ResolvedDependencies, resource{
			Name: f.Path, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
		})
	}
	by := &p.statement.Predicate.RunDetails.Builder
	by.ID, by.Version = builder, map[string]string{"tegen": version}

	text, err := json.Marshal(p.statement)
	if err != nil {
		return nil, fmt.Errorf("writing provenance: %w", err)
	}
	p.image, err = newImage(v1.Manifest{
		ArtifactType: string(provenanceType),
		Subject:      &a.image.descriptor,
		Annotations:  map[string]string{annotationCreated: created},
	}, static.NewLayer(text, provenanceType), map[string]string{"in-toto.io/predicate-type": predicateType})
	if err != nil {
		return nil, fmt.Errorf("writing provenance: %w", err)
	}
	return p, nil
}

// Digest is "sha256:…" of what is pushed.
func (p *Provenance) Digest() string { return p.image.descriptor.Digest.String() }

// sameMaking says whether another statement about the same artifact names the same inputs. By which version of tegen it
// was made may differ.
func (s *statement) sameMaking(other *statement) bool {
	core := func(s *statement) string {
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
