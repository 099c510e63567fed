package policy

import (
	"slices"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Served is what an API server writes into objects by itself.
type Served struct {
	Path []string // of the field; "[]" for every item of a list, "*" for every field
	// Value is what it sets where the field is not set, or the item or the fields that it adds; nil if unknown.
	Value any
	Adds  bool // to what an object has
}

// Differing is a rule whose verdict about an object can change by what the server writes.
type Differing struct {
	Path yamldoc.Path
	Rule string // its position
}

// PodsDiffer are the rules for pods that a server's own writing concerns.
func (p *Policy) PodsDiffer(s Served) []Differing { return differing(p.pod, s) }

// ObjectsDiffer are those for objects of a kind.
func (p *Policy) ObjectsDiffer(kind, group string, s Served) []Differing {
	return differing(p.objectRules(kind, group), s)
}

func differing(rules all, s Served) (out []Differing) {
	seen := map[string]bool{}
	for _, at := range differ(rules, s.Path, s) {
		if !seen[at.String()] {
			seen[at.String()] = true
			out = append(out, Differing{yamldoc.Path(s.Path), at.String()})
		}
	}
	return out
}

// differ looks into alternatives one by one, since another one may hold.
func differ(rules all, path []string, s Served) (at []position) {
	var inItems all
	for _, r := range rules {
		switch r := r.(type) {
		case *either:
			for _, alternative := range r.rules {
				at = append(at, differ(alternative, path, s)...)
			}
		case *items:
			inItems = append(inItems, r.rules...)
		}
	}
	if path[0] == "[]" {
		return append(at, differ(inItems, path[1:], s)...)
	}
	mappings := mappingsOf(rules)
	if path[0] == "*" {
		return append(at, differ(rulesOfFields(mappings), path[1:], s)...)
	}
	if len(path) > 1 {
		return append(at, differ(rulesFor(mappings, path[0]), path[1:], s)...)
	}
	return append(at, differAt(mappings, path[0], s)...)
}

// rulesOfFields are those of all fields.
func rulesOfFields(mappings []*mapping) (rules all) {
	for _, m := range mappings {
		for _, f := range m.fields {
			rules = append(rules, f.rules...)
		}
		for _, p := range m.patterns {
			rules = append(rules, p.rules...)
		}
	}
	return rules
}

// differAt compares the verdicts about a field without and with what the server writes.
func differAt(mappings []*mapping, name string, s Served) (at []position) {
	rules := rulesFor(mappings, name)
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name != name {
				continue
			}
			unset := f.presence == optional || f.presence == regular && passes(f.rules, f.filling())
			set := !f.never && passes(f.rules, s.Value)
			unknown := s.Value == nil && (f.presence != optional || f.never || f.rules.demand())
			if unset != set || unknown || s.Adds && !unaffected(rules, s.Value) {
				at = append(at, f.by.position)
			}
		}
		if m.closed && !m.lists(name) {
			at = append(at, m.by.position)
		}
		for _, p := range m.patterns {
			if passes(p.key, name) && (s.Value == nil || !passes(p.rules, s.Value)) {
				at = append(at, m.by.position)
			}
		}
	}
	return at
}

// filling is what takes the place of a regular field that is not set.
func (f field) filling() any {
	if f.list {
		return []any{}
	}
	return map[string]any{}
}

// unaffected reports whether no verdict about a list or a mapping can change if a value is added to it.
func unaffected(rules all, added any) bool {
	return !slices.ContainsFunc(rules, func(r rule) bool {
		switch r := r.(type) {
		case *items:
			list, _ := added.([]any)
			return !passes(all{r}, list)
		case *mapping:
			fields, _ := added.(map[string]any)
			return r.concerns(fields)
		}
		return true // a number of items, or alternatives
	})
}

// concerns reports whether a rule is about one of the fields.
func (m *mapping) concerns(fields map[string]any) bool {
	for name, v := range fields {
		named := slices.ContainsFunc(m.fields, func(f field) bool { return f.name == name })
		if named || m.closed && !m.lists(name) || slices.ContainsFunc(m.patterns, func(p pattern) bool {
			return passes(p.key, name) && !passes(p.rules, v)
		}) {
			return true
		}
	}
	return false
}
