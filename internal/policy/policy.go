// Package policy checks jobs and rendered objects against rules that a platform team writes in CUE.
//
// Input: CUE files with the fields job, pod and object, and the Go types of what these constrain; later, values.
// Output: a [Policy], or every mistake with its position; later, every violation of a value, with its path and the
// position of the rule.
// Invariant: loading refuses everything that the package does not check. A rule is never ignored.
//
// The files are read with CUE's own parser and become a tree of rules. CUE's evaluator is not used: it reports only
// some of several violations, and it has no limit of time. Tests compare the verdicts of both.
package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Source is one CUE file.
type Source struct {
	Name string // for messages
	// Scope is the directory of files that share their hidden fields, as the files of a CUE package do.
	Scope string
	// Rules is where violations say that the rules are, in place of positions in the text.
	Rules string
	Text  []byte
}

// Types are the Go types that the fields of a policy constrain.
type Types struct {
	Job, Pod reflect.Type
	// Object returns the types of a kind, such as Job or Job.batch.volcano.sh: none for an unknown kind, several for
	// a kind of several API groups.
	Object func(kind string) []reflect.Type
	Kinds  []string // known to Object, for suggestions
}

// Policy is the rules of all sources. A nil Policy has none.
type Policy struct {
	job, pod all
	objects  map[string]all // by kind
}

// HasJobRules reports whether the policy constrains jobs.
func (p *Policy) HasJobRules() bool { return p != nil && len(p.job) > 0 }

// HasObjectRules reports whether the policy constrains what jobs are rendered to.
func (p *Policy) HasObjectRules() bool { return p != nil && len(p.pod)+len(p.objects) > 0 }

// HasPodRules reports whether the policy constrains pods.
func (p *Policy) HasPodRules() bool { return p != nil && len(p.pod) > 0 }

// With is the rules of two policies. Either may be nil.
func (p *Policy) With(q *Policy) *Policy {
	if p == nil || q == nil {
		return cmp.Or(p, q)
	}
	out := &Policy{
		job: slices.Concat(p.job, q.job), pod: slices.Concat(p.pod, q.pod), objects: maps.Clone(p.objects),
	}
	for kind, rules := range q.objects {
		out.objects[kind] = slices.Concat(out.objects[kind], rules)
	}
	return out
}

// Without is the policy without the rules for objects of some kinds.
func (p *Policy) Without(excluded func(kind string) bool) *Policy {
	if p == nil {
		return nil
	}
	out := &Policy{job: p.job, pod: p.pod, objects: maps.Clone(p.objects)}
	maps.DeleteFunc(out.objects, func(kind string, _ all) bool { return excluded(kind) })
	return out
}

// Violation is a value that a rule refuses.
type Violation struct {
	Path    yamldoc.Path // in the value; of a missing field its own
	Message string       // the platform's own, or what the rule demands and what is there
	Rule    string       // position of the rule, as file:line:column
}

func (v Violation) String() string { return fmt.Sprintf("%s (%s)", v.Message, v.Rule) }

// Job returns the violations of a TrainingJob.
func (p *Policy) Job(job any) ([]Violation, error) {
	if p == nil || len(p.job) == 0 {
		return nil, nil
	}
	return p.judge(p.job, job)
}

// Pod returns the violations of the template of pods.
func (p *Policy) Pod(template any) ([]Violation, error) {
	if p == nil || len(p.pod) == 0 {
		return nil, nil
	}
	return p.judge(p.pod, template)
}

// HasRulesFor reports whether the policy constrains objects of a kind.
func (p *Policy) HasRulesFor(kind, group string) bool {
	return p != nil && len(p.objects[kind])+len(p.objects[kind+"."+group]) > 0
}

// Object returns the violations of an object by the rules of its kind and of its kind with group.
func (p *Policy) Object(kind, group string, object any) ([]Violation, error) {
	if p == nil || len(p.objects) == 0 {
		return nil, nil
	}
	rules := p.objectRules(kind, group)
	if len(rules) == 0 {
		return nil, nil
	}
	return p.judge(rules, object)
}

// objectRules are those of a kind by its name alone, and those by its name and group.
func (p *Policy) objectRules(kind, group string) all {
	return slices.Concat(p.objects[kind], p.objects[kind+"."+group])
}

func (p *Policy) judge(rules all, object any) ([]Violation, error) {
	text, err := json.Marshal(visible(reflect.ValueOf(object), rules))
	if err != nil {
		return nil, fmt.Errorf("encoding %T for the policy: %w", object, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decoding %T for the policy: %w", object, err)
	}
	withoutNulls(value)
	var r report
	rules.check(value, nil, &r)
	return r.violations, nil
}

// withoutNulls removes fields without a value: Go's encoding writes null for a list that is not set.
func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, below any) bool { return below == nil })
		for _, below := range v {
			withoutNulls(below)
		}
	case []any:
		for _, item := range v {
			withoutNulls(item)
		}
	}
}

// Load reads all sources. The error is a finding.List with every mistake.
func Load(sources []Source, types Types) (*Policy, error) {
	p := &Policy{objects: map[string]all{}}
	var mistakes finding.List
	for _, files := range scopes(sources) {
		b := &builder{types: types, hidden: map[string][]definition{}}
		b.scope(files, p)
		mistakes = append(mistakes, b.mistakes...)
	}
	if len(mistakes) == 0 {
		mistakes = append(mistakes, p.contradictions()...)
	}
	if err := mistakes.Once().Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// contradictions are rules, also of different files, that no value can satisfy together.
func (p *Policy) contradictions() (mistakes finding.List) {
	var a analysis
	for _, rules := range slices.Concat([]all{p.job, p.pod}, slices.Collect(maps.Values(p.objects))) {
		mistakes = append(mistakes, a.contradictions(rules)...)
	}
	if a.over {
		return finding.List{{
			Rule: "policy/load", Level: finding.Error,
			Message: "the policy has too many alternatives and patterns to be checked for contradictions: write fewer",
		}}
	}
	return mistakes
}

// scopes groups sources that share hidden fields, in their order.
func scopes(sources []Source) (groups [][]Source) {
	at := map[string]int{}
	for _, s := range sources {
		scope := s.Scope
		if scope == "" {
			scope = s.Name
		}
		if _, ok := at[scope]; !ok {
			at[scope] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[scope]] = append(groups[at[scope]], s)
	}
	return groups
}

// position is where a rule is written.
type position struct {
	file         string
	line, column int
	instead      string // what String returns
}

func (p position) String() string {
	if p.instead != "" {
		return p.instead
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}

func (p position) mistake(format string, args ...any) finding.Finding {
	return finding.Finding{
		Rule: "policy/load", Level: finding.Error, File: p.file, Line: p.line, Column: p.column,
		Message: fmt.Sprintf(format, args...),
	}
}
