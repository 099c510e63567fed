package structural

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"cuelang.org/go/cue"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// scalar is what a definition allows for one string, number or boolean.
type scalar struct {
	value     cue.Value
	kinds     cue.Kind
	evaluator *evaluator
	seen      sync.Map // scalarKey to bool: documents repeat each other's values

	// The rest is asked of CUE when a value first comes by: few of a schema's fields occur in a document.
	once   sync.Once
	free   bool // any value of its kind
	format string
}

type scalarKey struct {
	kind yamldoc.Kind
	text string
}

// evaluator lets one goroutine at a time into the CUE evaluator, which is not safe for more.
type evaluator struct {
	mu      sync.Mutex
	ctx     *cue.Context
	formats map[string]func(text string) bool
}

// Enum returns the only values that may stand here, nil where they are not listed.
func (s *Schema) Enum() []string {
	if s.scalar == nil {
		return nil
	}
	return s.scalar.enum()
}

// IsScalar says whether one value stands here, and not a mapping or a list.
func (s *Schema) IsScalar() bool { return s.scalar != nil }

// Allows says whether a string may stand here.
func (s *Schema) Allows(text string) bool {
	return s.scalar != nil && s.scalar.allows(&Node{Kind: yamldoc.String, Text: text})
}

func newScalar(v cue.Value, e *evaluator) *scalar {
	return &scalar{value: v, kinds: v.IncompleteKind(), evaluator: e}
}

// look asks CUE what kind of restriction the definition is. The evaluator is locked.
func (s *scalar) look() {
	op, _ := cue.Dereference(s.value).Expr()
	s.free = op == cue.NoOp && !s.value.IsConcrete()
	s.format = attribute(s.value, "format")
}

// enum returns the only values allowed, if they are listed.
func (s *scalar) enum() []string {
	s.evaluator.mu.Lock()
	defer s.evaluator.mu.Unlock()
	return literals(s.value)
}

// words end a sentence that begins with "must be".
func (s *scalar) words() string {
	enum := s.enum()
	s.evaluator.mu.Lock()
	defer s.evaluator.mu.Unlock()
	if words := attribute(s.value, "must"); words != "" {
		return words
	}
	if len(enum) > 1 {
		return "one of " + strings.Join(enum, ", ")
	}
	return describe(s.value)
}

// attribute returns the text of an attribute of a definition, of what it refers to, or of a part of its conjunction.
func attribute(v cue.Value, name string) string {
	if a := cue.Dereference(v).Attribute(name); a.Err() == nil {
		if text, err := a.String(0); err == nil {
			return text
		}
	}
	if op, args := v.Expr(); op == cue.AndOp {
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

// kindFits says whether a YAML value is of a kind that the definition allows at all.
func (s *scalar) kindFits(k yamldoc.Kind) bool {
	switch k {
	case yamldoc.Bool:
		return s.kinds&cue.BoolKind != 0
	case yamldoc.Int:
		return s.kinds&cue.IntKind != 0
	case yamldoc.Float:
		return s.kinds&cue.FloatKind != 0
	case yamldoc.String:
		return s.kinds&cue.StringKind != 0
	}
	return false
}

// allows says whether CUE accepts the value.
func (s *scalar) allows(n *Node) bool {
	s.once.Do(func() {
		s.evaluator.mu.Lock()
		defer s.evaluator.mu.Unlock()
		s.look()
	})
	if s.free {
		return true
	}
	key := scalarKey{n.Kind, n.Text}
	if known, ok := s.seen.Load(key); ok {
		return known.(bool)
	}
	s.evaluator.mu.Lock()
	ok := s.value.Unify(s.evaluator.encode(n)).Validate(cue.Concrete(true)) == nil
	s.evaluator.mu.Unlock()
	if parses := s.evaluator.formats[s.format]; ok && parses != nil {
		ok = parses(n.Text)
	}
	s.seen.Store(key, ok)
	return ok
}

func (e *evaluator) encode(n *Node) cue.Value {
	switch n.Kind {
	case yamldoc.Bool:
		return e.ctx.Encode(n.Text == "true")
	case yamldoc.Int:
		i, err := strconv.ParseInt(n.Text, 10, 64)
		if err == nil {
			return e.ctx.Encode(i)
		}
	case yamldoc.Float:
		f, err := strconv.ParseFloat(n.Text, 64)
		if err == nil {
			return e.ctx.Encode(f)
		}
	}
	return e.ctx.Encode(n.Text)
}
