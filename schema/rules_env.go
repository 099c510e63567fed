package schema

import (
	"fmt"
	"slices"
	"strings"
)

var envRules = []rule{
	{(*validation).environmentSources, "envFrom framework launcher"},
}

// environmentSources refuses what would stand in for variables that tegen sets, and what adds nothing.
func (r *validation) environmentSources() {
	for i, e := range r.Spec.EnvFrom {
		at := fmt.Sprintf("spec.envFrom[%d]", i)
		if strings.HasPrefix(e.Prefix, "PET_") && !r.Spec.Unlaunched() {
			r.fail(at+".prefix", "reserved", "%s starts the names of torchrun's own settings, which tegen sets: see "+
				"spec.rendezvous and spec.workers", e.Prefix)
		}
	}
	r.twiceFrom("spec.envFrom", r.Spec.EnvFrom)
}

// twiceFrom refuses a source that brings nothing that is not there.
func (r *validation) twiceFrom(at string, sources []EnvFrom) {
	for i, e := range sources {
		same := func(other EnvFrom) bool {
			return e.Secret == other.Secret && e.ConfigMap == other.ConfigMap && e.Prefix == other.Prefix
		}
		if first := slices.IndexFunc(sources, same); first < i {
			r.fail(fmt.Sprintf("%s[%d]", at, i), "duplicate", "is %s[%d] again: leave it out", at, first)
		}
	}
}

// envNotes tell what variables have no value of their own, or another's.
func (s *Spec) envNotes() (notes []string) {
	for i, e := range s.Env {
		if e.Resource == "" {
			continue
		}
		kind, name, _ := strings.Cut(e.Resource, ".")
		_, set := s.Resources.Limited()[name]
		if kind == "requests" {
			_, set = s.Resources.Requested()[name]
		}
		if !set {
			notes = append(notes, fmt.Sprintf("spec.env[%d].resource: a worker has no %s, so that %s holds what "+
				"Kubernetes puts there: all that the node has for a limit, 0 for a request", i, e.Resource, e.Name))
		}
	}
	prefixes := map[string]int{}
	for i, e := range s.EnvFrom {
		first, again := prefixes[e.Prefix]
		if !again {
			prefixes[e.Prefix] = i
			continue
		}
		notes = append(notes, fmt.Sprintf("spec.envFrom[%d]: of a key that spec.envFrom[%d] has too, this one counts, "+
			"and nothing tells of it: set a prefix to keep both", i, first))
	}
	return notes
}
