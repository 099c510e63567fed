// Package provenance has the form in which tegen says what something was made of: an in-toto statement
// (https://in-toto.io/Statement/v1) whose predicate is SLSA's provenance (https://slsa.dev/spec/v1.0/provenance). There
// is no time in it, so that it is reproducible like what it is about.
package provenance

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	// PredicateType is the type of every statement's predicate.
	PredicateType = "https://slsa.dev/provenance/v1"
	builder       = "https://github.com/tegen-dev/tegen"
)

// Statement says of its subjects what they were made of.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Predicate  `json:"predicate"`
}

// Resource is something that a digest identifies.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// Predicate is what was done, and by what.
type Predicate struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition is all that the subjects follow from.
type BuildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []Resource        `json:"resolvedDependencies"`
}

// RunDetails say what did it.
type RunDetails struct {
	Builder Builder `json:"builder"`
}

// Builder is what did it.
type Builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// New returns a statement about the subjects, which tegen made. The build type is a document that says what the
// parameters and dependencies of such a statement are.
func New(buildType string, subjects []Resource, parameters map[string]string, version map[string]string) Statement {
	s := Statement{Type: statementType, Subject: subjects, PredicateType: PredicateType}
	s.Predicate.BuildDefinition.BuildType = buildType
	s.Predicate.BuildDefinition.ExternalParameters = parameters
	s.Predicate.RunDetails.Builder = Builder{ID: builder, Version: version}
	return s
}

// DependOn adds what the subjects were made of.
func (s *Statement) DependOn(on ...Resource) {
	made := &s.Predicate.BuildDefinition
	made.ResolvedDependencies = append(made.ResolvedDependencies, on...)
}

// File is a file as a resource.
func File(name string, content []byte) Resource {
	sum := sha256.Sum256(content)
	return Resource{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}}
}

// Commit is a commit of a repository as a resource.
func Commit(repository, commit string) Resource {
	return Resource{URI: "git+" + repository, Digest: map[string]string{"gitCommit": commit}}
}
