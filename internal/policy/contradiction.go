package policy

import (
	"slices"
	"time"

	"github.com/tegen-dev/tegen/internal/finding"
)

// analysis finds rules that no value can satisfy together. Its steps and its time are limited, since alternatives and
// patterns multiply.
type analysis struct {
	steps int
	end   time.Time
	over  bool
}

const (
	maxSteps = 200_000
	maxTime  = 2 * time.Second // a policy of 60 rules takes 2 ms
)

func (a *analysis) isOver() bool {
	a.steps++
	if a.end.IsZero() {
		a.end = time.Now().Add(maxTime)
	}
	a.over = a.over || a.steps > maxSteps || time.Now().After(a.end)
	return a.over
}

// contradictions are the places where no value satisfies all rules, also in fields and items that need not be there.
func (a *analysis) contradictions(rules all) (mistakes finding.List) {
	if len(rules) == 0 || a.isOver() {
		return nil
	}
	if at, ok := a.contradiction(rules); ok {
		return finding.List{at.mistake("no value satisfies this together with the other rules for the same " +
			"value; to forbid a field, write name?: _|_")}
	}
	var inItems all
	mappings := mappingsOf(rules)
	for _, r := range rules {
		switch r := r.(type) {
		case *mapping:
			for _, p := range r.patterns {
				mistakes = append(append(mistakes, a.contradictions(p.key)...), a.contradictions(p.rules)...)
			}
		case *items:
			inItems = append(inItems, r.rules...)
		case *either:
			for _, alternative := range r.rules {
				mistakes = append(mistakes, a.contradictions(alternative)...)
			}
		}
	}
	for _, name := range fieldNames(mappings, nil) {
		if a.isOver() {
			break
		}
		if _, forbidden := forbids(mappings, name); !forbidden {
			mistakes = append(mistakes, a.contradictions(rulesFor(mappings, name))...)
		}
	}
	return append(mistakes, a.contradictions(inItems)...)
}

func mappingsOf(rules all) (mappings []*mapping) {
	for _, r := range rules {
		if m, ok := r.(*mapping); ok {
			mappings = append(mappings, m)
		}
	}
	return mappings
}

// forbids returns the rule that forbids a field.
func forbids(mappings []*mapping, name string) (position, bool) {
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name && f.never {
				return f.by.position, true
			}
		}
		if m.closed && !m.lists(name) {
			return m.by.position, true
		}
	}
	return position{}, false
}

// demands returns a rule that requires a field or fills it in.
func demands(mappings []*mapping, name string) (position, bool) {
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name && f.presence != optional {
				return f.by.position, true
			}
		}
	}
	return position{}, false
}

// contradiction reports a rule that cannot hold beside the others.
func (a *analysis) contradiction(rules all) (position, bool) {
	if a.isOver() {
		return position{}, false
	}
	for _, r := range rules {
		e, ok := r.(*either)
		if !ok {
			continue
		}
		if values := constants(e); values != nil {
			return e.by.position, !slices.ContainsFunc(values, func(v any) bool {
				return a.isOver() || passes(rules, v)
			})
		}
	}
	var plain all
	for _, r := range rules {
		if _, ok := r.(*either); !ok {
			plain = append(plain, r)
		}
	}
	for _, r := range plain {
		if s, ok := r.(*scalar); ok && s.value != nil {
			return s.by.position, !passes(rules, s.value)
		}
	}
	if at, ok := emptyRange(plain); ok {
		return at, true
	}
	if at, ok := noKind(plain); ok {
		return at, true
	}
	mappings := mappingsOf(plain)
	for _, name := range fieldNames(mappings, nil) {
		if a.isOver() {
			break
		}
		at, demanded := demands(mappings, name)
		if _, forbidden := forbids(mappings, name); demanded && forbidden {
			return at, true
		}
		if at, ok := a.contradiction(rulesFor(mappings, name)); demanded && ok {
			return at, true
		}
	}
	for _, r := range rules {
		e, ok := r.(*either)
		if ok && !slices.ContainsFunc(e.rules, func(alternative all) bool {
			_, contradicts := a.contradiction(append(slices.Clone(plain), alternative...))
			return !contradicts
		}) {
			return e.by.position, true
		}
	}
	return position{}, false
}

// constants are the alternatives of a disjunction if each demands one value, nil otherwise.
func constants(e *either) (values []any) {
	for _, r := range e.rules {
		found := false
		for _, r := range r {
			if s, ok := r.(*scalar); ok && s.value != nil {
				values, found = append(values, s.value), true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return values
}

// emptyRange reports a limit that excludes all numbers which another one allows.
func emptyRange(rules all) (position, bool) {
	var least, most *bound
	for _, r := range rules {
		s, ok := r.(*scalar)
		if !ok || s.bound == nil {
			continue
		}
		b := s.bound
		if b.upper && (most == nil || b.tighter(most)) {
			most = b
		}
		if !b.upper && (least == nil || b.tighter(least)) {
			least = b
		}
		if least == nil || most == nil {
			continue
		}
		if c := least.than.Cmp(most.than); c > 0 || c == 0 && (least.strict || most.strict) {
			return s.by.position, true
		}
	}
	return position{}, false
}

func (b *bound) tighter(than *bound) bool {
	c := b.than.Cmp(than.than)
	if c == 0 {
		return b.strict
	}
	return b.upper == (c < 0)
}

// noKind reports a rule for values of another kind than the rules before it.
func noKind(rules all) (position, bool) {
	left := anyKind
	for _, r := range rules {
		k, at := kindsOf(r)
		if left &= k; left == 0 {
			return at, true
		}
	}
	return position{}, false
}

func kindsOf(r rule) (kinds, position) {
	switch r := r.(type) {
	case *mapping:
		return isMapping, r.by.position
	case *items:
		return isList, r.by.position
	case *scalar:
		return r.kinds, r.by.position
	}
	return anyKind, position{}
}
