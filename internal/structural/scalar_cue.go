//go:build !js

package structural

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/encoding/jsonschema"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// evaluator lets one goroutine at a time into the CUE evaluator, which is not safe for more.
type evaluator struct {
	mu      sync.Mutex
	ctx     *cue.Context
	formats map[string]func(text string) bool
}

func newScalar(v cue.Value, e *evaluator) *scalar {
	known := sync.OnceValue(func() *restriction {
		e.mu.Lock()
		defer e.mu.Unlock()
		r := &restriction{Kinds: kindsOf(v.IncompleteKind()), Enum: literals(v), Format: attribute(v, "format")}
		r.Must = wordsOf(v, r.Enum)
		if op, _ := cue.Dereference(v).Expr(); op != cue.NoOp || v.IsConcrete() {
			r.Rule = ruleOf(v)
		}
		r.parses = e.formats[r.Format]
		return r
	})
	return &scalar{known: known, generate: func() (map[string]any, error) { return e.jsonSchema(v) }}
}

// jsonSchema is a scalar's definition by CUE's own generator.
func (e *evaluator) jsonSchema(v cue.Value) (out map[string]any, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expr, err := jsonschema.Generate(v.Eval(), nil)
	if err != nil {
		return nil, err
	}
	text, err := e.ctx.BuildExpr(expr).MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	delete(out, "$schema")
	return out, nil
}

func wordsOf(v cue.Value, enum []string) string {
	if words := attribute(v, "must"); words != "" {
		return words
	}
	if len(enum) > 1 {
		return "one of " + strings.Join(enum, ", ")
	}
	return describe(v)
}

func kindsOf(k cue.Kind) (out kinds) {
	for _, one := range []struct {
		cue  cue.Kind
		yaml yamldoc.Kind
	}{
		{cue.BoolKind, yamldoc.Bool},
		{cue.IntKind, yamldoc.Int},
		{cue.FloatKind, yamldoc.Float},
		{cue.StringKind, yamldoc.String},
	} {
		if k&one.cue != 0 {
			out = append(out, one.yaml)
		}
	}
	return out
}

// ruleOf is the expression of a scalar's definition as data, with the message of its attribute @refuse.
func ruleOf(v cue.Value) *rule {
	r := expressionOf(v)
	definition := cue.Dereference(v)
	if a := definition.Attribute("refuse"); a.Err() == nil {
		m := messageOf(definition, "refuse")
		r.Refusal = &m
	}
	return r
}

// expressionOf is an expression as data. What it has no word for is a fault of the build.
func expressionOf(v cue.Value) *rule {
	if v.IsConcrete() {
		return literalRule(v)
	}
	op, args := cue.Dereference(v).Expr()
	switch op {
	case cue.OrOp:
		return &rule{Any: rulesOf(args)}
	case cue.AndOp:
		return &rule{All: rulesOf(args)}
	case cue.NoOp:
		if len(args) == 1 && cue.Dereference(args[0]).IncompleteKind() == v.IncompleteKind() {
			return &rule{Kinds: kindsOf(v.IncompleteKind())}
		}
	case cue.RegexMatchOp:
		return &rule{Match: textOf(args[0])}
	case cue.NotRegexMatchOp:
		return &rule{Without: textOf(args[0])}
	case cue.NotEqualOp:
		return &rule{Not: literalRule(args[0])}
	case cue.GreaterThanEqualOp:
		return &rule{Least: numberOf(args[0])}
	case cue.GreaterThanOp:
		return &rule{Above: numberOf(args[0])}
	case cue.LessThanEqualOp:
		return &rule{Most: numberOf(args[0])}
	}
	panic(fmt.Errorf("compiling the schema: %v is a %v, for which there is no rule", v, op))
}

func rulesOf(args []cue.Value) []*rule {
	out := make([]*rule, len(args))
	for i, arg := range args {
		out[i] = ruleOf(arg)
	}
	return out
}

func literalRule(v cue.Value) *rule {
	k := kindsOf(v.Kind())
	return &rule{Kinds: k, Is: &value{k[0], literals(v)[0]}}
}

func textOf(v cue.Value) string {
	text, err := v.String()
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return text
}

func numberOf(v cue.Value) *float64 {
	n, err := v.Float64()
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return &n
}

// attribute returns the text of an attribute of a definition, of what it refers to, or of a part of its conjunction.
func attribute(v cue.Value, name string) string {
	if a := cue.Dereference(v).Attribute(name); a.Err() == nil {
		if text, err := a.String(0); err == nil {
			return text
		}
	}
	if op, args := cue.Dereference(v).Expr(); op == cue.AndOp {
		for _, a := range args {
			if text := attribute(a, name); text != "" {
				return text
			}
		}
	}
	return ""
}

// literals returns the values of a disjunction of literals, or of a single one.
func literals(v cue.Value) []string {
	if v.IsConcrete() {
		text, err := v.MarshalJSON()
		if err != nil {
			return nil
		}
		return []string{strings.Trim(string(text), `"`)}
	}
	op, args := v.Expr()
	if op == cue.NoOp && len(args) == 1 {
		return nil
	}
	if op != cue.OrOp {
		return nil
	}
	var out []string
	for _, a := range args {
		l := literals(a)
		if l == nil {
			return nil
		}
		out = append(out, l...)
	}
	return out
}

// describe puts ranges, kinds and disjunctions of them into words.
func describe(v cue.Value) string {
	if l := literals(v); len(l) == 1 {
		return l[0]
	}
	op, args := v.Expr()
	switch op {
	case cue.OrOp:
		parts := make([]string, len(args))
		for i, a := range args {
			parts[i] = describe(a)
		}
		return strings.Join(parts[:len(parts)-1], ", ") + " or " + parts[len(parts)-1]
	case cue.AndOp:
		low, high := bounds(v)
		switch {
		case low != "" && high != "":
			return fmt.Sprintf("an integer from %s to %s", low, high)
		case low != "":
			return fmt.Sprintf("an integer of at least %s", low)
		}
	}
	switch v.IncompleteKind() {
	case cue.IntKind:
		return "an integer"
	case cue.BoolKind:
		return "true or false"
	case cue.StringKind:
		return "a string"
	}
	return v.IncompleteKind().String()
}

func bounds(v cue.Value) (low, high string) {
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			l, h := bounds(a)
			low, high = low+l, high+h
		}
	case cue.GreaterThanEqualOp:
		low = fmt.Sprint(args[0])
	case cue.LessThanEqualOp:
		high = fmt.Sprint(args[0])
	}
	return low, high
}
