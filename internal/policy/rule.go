package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// rule is a constraint on one value of a JSON document.
type rule interface {
	// check reports the violations of a value at a path.
	check(v any, path yamldoc.Path, r *report)
}

// report collects violations.
type report struct{ violations []Violation }

func (r *report) add(path yamldoc.Path, by origin, format string, args ...any) {
	message := by.message
	if message == "" {
		message = fmt.Sprintf(format, args...)
	}
	r.violations = append(r.violations, Violation{path, message, by.String()})
}

// origin is where a rule is written, and the @message of the innermost field around it that has one.
type origin struct {
	position
	message string
}

// passes reports whether a value satisfies a rule.
func passes(rule rule, v any) bool {
	var r report
	rule.check(v, nil, &r)
	return len(r.violations) == 0
}

// all are rules that a value satisfies together. Several mappings among them are checked as the one mapping that they
// are in CUE: a field that one of them fills in is set for all.
type all []rule

func (a all) check(v any, path yamldoc.Path, r *report) {
	var mappings []*mapping
	var inItems all
	alternatives := false
	for _, rule := range a {
		switch rule := rule.(type) {
		case *mapping:
			mappings = append(mappings, rule)
		case *items:
			rule.check(v, path, r)
			inItems = append(inItems, rule.rules...)
		case *either:
			alternatives = true
		default:
			rule.check(v, path, r)
		}
	}
	if len(mappings) > 0 {
		checkMappings(mappings, v, path, r)
	}
	if list, ok := v.([]any); ok && len(inItems) > 0 {
		for i, item := range list {
			inItems.check(item, path.Index(i), r)
		}
	}
	if alternatives {
		v = a.filled(v)
	}
	for _, rule := range a {
		if e, ok := rule.(*either); ok {
			e.check(v, path, r)
		}
	}
}

// filled is a value with the empty mappings and lists that regular fields put into it, at every depth. The value itself
// stays as it is.
func (a all) filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		mappings := mappingsOf(a)
		if len(mappings) == 0 {
			return v
		}
		out := maps.Clone(fill(mappings, v))
		for name, below := range out {
			out[name] = rulesFor(mappings, name).filled(below)
		}
		return out
	case []any:
		inItems := rulesOfItems(a)
		if len(inItems) == 0 {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = inItems.filled(item)
		}
		return out
	}
	return v
}

// rulesOfItems are those of all items of a list.
func rulesOfItems(rules all) (inItems all) {
	for _, r := range rules {
		if r, ok := r.(*items); ok {
			inItems = append(inItems, r.rules...)
		}
	}
	return inItems
}

// either is a disjunction: a value satisfies one of the rules.
type either struct {
	by    origin
	rules []all
}

func (e *either) check(v any, path yamldoc.Path, r *report) {
	var least []Violation
	for i, rule := range e.rules {
		var one report
		rule.check(v, path, &one)
		if len(one.violations) == 0 {
			return
		}
		if i == 0 || len(one.violations) < len(least) {
			least = one.violations
		}
	}
	if demand, ok := demandOf(e); ok {
		r.add(path, e.by, "must %s, not %s", demand, show(v))
		return
	}
	if e.by.message != "" {
		r.add(path, e.by, "")
		return
	}
	for _, v := range least { // of the alternative that the value is closest to
		v.Message = fmt.Sprintf("satisfies none of %d alternatives; the closest one: %s", len(e.rules), v.Message)
		r.violations = append(r.violations, v)
	}
}

// scalar is a constraint on one value that has no values below it.
type scalar struct {
	by       origin
	demand   string // of a value: "be at most 32"
	holds    func(v any) bool
	kinds    kinds // that can hold
	value    any   // of a constant, nil elsewhere
	whole    bool  // of a list: its items matter, and not only their number
	excludes any   // the operand of !=
	bound    *bound
	cel      expression
}

// bound is one side of a range of numbers.
type bound struct {
	upper, strict bool
	than          *big.Rat
}

func (s *scalar) check(v any, path yamldoc.Path, r *report) {
	switch {
	case s.holds(v):
		return
	case s.excludes != nil && equal(s.excludes, v): // the message has the value already
		r.add(path, s.by, "must %s", s.demand)
		return
	}
	r.add(path, s.by, "must %s, not %s", s.demand, show(v))
}

// demandOf joins the demands of scalars.
func demandOf(r rule) (string, bool) {
	switch r := r.(type) {
	case *scalar:
		return r.demand, true
	case all:
		return joined(r, " and ")
	case *either:
		return joined(r.rules, " or ")
	}
	return "", false
}

func joined[R rule](rules []R, with string) (string, bool) {
	var demands []string
	for _, r := range rules {
		demand, ok := demandOf(r)
		if !ok {
			return "", false
		}
		demands = append(demands, demand)
	}
	return strings.Join(demands, with), len(demands) > 0
}

// presence is what a policy says about a field that is not set.
type presence int

const (
	regular  presence = iota // an empty mapping or list takes its place
	optional                 // nothing is checked
	required                 // a violation
)

// field is a constraint on one field of a mapping.
type field struct {
	by       origin
	name     string
	presence presence
	never    bool // must not be set
	list     bool // an empty list takes the place of a regular field that is not set
	rules    all
	encoded
	older string // the field's older name, by which an object can have it
}

// mapping is a constraint on the fields of a mapping.
type mapping struct {
	by       origin
	fields   []field
	patterns []pattern
	closed   bool     // has no other fields
	typed    bool     // a value of its Go type is always a mapping
	pointers []string // of a closed mapping: fields that are left out only if they are not set
}

// pattern is a constraint on the fields whose name satisfies key.
type pattern struct{ key, rules all }

func (m *mapping) check(v any, path yamldoc.Path, r *report) {
	checkMappings([]*mapping{m}, v, path, r)
}

func checkMappings(mappings []*mapping, v any, path yamldoc.Path, r *report) {
	object, ok := v.(map[string]any)
	if !ok {
		for _, m := range mappings {
			r.add(path, m.by, "must be a mapping, not %s", show(v))
		}
		return
	}
	object = fill(mappings, object)
	for _, name := range fieldNames(mappings, object) {
		below, set := valueOf(mappings, object, name)
		for _, m := range mappings {
			m.checkPresence(name, set, path.Add(name), r)
		}
		if set {
			rulesFor(mappings, name).check(below, path.Add(name), r)
		}
	}
}

// valueOf is the value of a field, which an object can have by an older name.
func valueOf(mappings []*mapping, object map[string]any, name string) (v any, set bool) {
	if v, set = object[name]; set {
		return v, true
	}
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name && f.older != "" {
				v, set = object[f.older]
				return v, set
			}
		}
	}
	return nil, false
}

// fill sets regular fields that are not set. It returns a copy if there are any.
func fill(mappings []*mapping, object map[string]any) map[string]any {
	out := object
	for _, m := range mappings {
		for _, f := range m.fields {
			if _, set := out[f.name]; set || f.presence != regular {
				continue
			}
			if len(out) == len(object) {
				out = maps.Clone(object)
			}
			if out[f.name] = map[string]any{}; f.list {
				out[f.name] = []any{}
			}
		}
	}
	return out
}

// fieldNames are the fields that the mappings name, in their order, and then the others of an object.
func fieldNames(mappings []*mapping, object map[string]any) (names []string) {
	known := map[string]bool{}
	for _, m := range mappings {
		for _, f := range m.fields {
			if !known[f.name] {
				known[f.name] = true
				names = append(names, f.name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// rulesFor are those of a field that is set.
func rulesFor(mappings []*mapping, name string) (rules all) {
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name {
				rules = append(rules, f.rules...)
			}
		}
		for _, p := range m.patterns {
			if passes(p.key, name) {
				rules = append(rules, p.rules...)
			}
		}
	}
	return rules
}

func (m *mapping) checkPresence(name string, set bool, path yamldoc.Path, r *report) {
	for _, f := range m.fields {
		switch {
		case f.name != name:
		case f.never && set:
			r.add(path, f.by, "is not allowed")
		case !set && f.presence == required:
			r.add(path, f.by, "is required")
		}
	}
	if m.closed && set && !m.lists(name) {
		r.add(path, m.by, "is not allowed")
	}
}

// lists reports whether a closed mapping allows a field.
func (m *mapping) lists(name string) bool {
	return slices.ContainsFunc(m.fields, func(f field) bool { return f.name == name || f.older == name }) ||
		slices.ContainsFunc(m.patterns, func(p pattern) bool { return passes(p.key, name) })
}

// items is a constraint on every item of a list.
type items struct {
	by    origin
	rules all
	typed bool // a value of its Go type is always a list
}

// check reports a value that is no list. The rules of its items are checked by all.
func (l *items) check(v any, path yamldoc.Path, r *report) {
	if _, ok := v.([]any); !ok {
		r.add(path, l.by, "must be a list, not %s", show(v))
	}
}

// number is the numeric value of a JSON number, or of a text that is a quantity where the type is one.
func number(v any, isQuantity bool) (*big.Rat, bool) {
	switch v := v.(type) {
	case json.Number:
		return new(big.Rat).SetString(v.String())
	case string:
		if !isQuantity {
			return nil, false
		}
		q, err := quantity.Parse(v)
		if err != nil {
			return nil, false
		}
		return new(big.Rat).SetString(q.AsDec().String())
	}
	return nil, false
}

// show is a value for a message, cut where it is long, and without credentials: messages end in logs.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a mapping"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		v = credentials().ReplaceAllString(v, "://***@")
		if utf8.RuneCountInString(v) > 80 {
			v = string([]rune(v)[:77]) + "..."
		}
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(v)
	}
}

var credentials = lazy.Regexp(`://[^/@]*@`)
