package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/rule"
)

// TestPanic: a fault of tegen while it loads one job is a mistake at this job, and hides no mistake of another.
func TestPanic(t *testing.T) {
	before := rule.Rules
	defer func() { rule.Rules = before }()
	rule.Rules = append(rule.Rules[:len(rule.Rules):len(rule.Rules)], part.Of1(func(_ *rule.Problems, m *job.Metadata) {
		if m.Name == "b" {
			var none *structural.Node
			_ = none.Items[0]
		}
	}, part.Metadata))
	_, errs := load(t, small("a"), small("b"), strings.Replace(small("c"), "image:", "imag:", 1))
	if len(errs) != 3 {
		t.Fatalf("%v", errs)
	}
	const want = `1.yaml:1:1: job "b": internal error: runtime error: invalid memory address or nil pointer ` +
		`dereference (schema/guarded_test.go:`
	if got := errs[0].Error(); !strings.HasPrefix(got, want) || errs[0].Rule != "internal" {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.HasPrefix(errs[2].Error(), "2.yaml:5:3: spec.imag: unknown field") {
		t.Errorf("%v", errs[2])
	}
}
