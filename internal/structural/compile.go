//go:build !js

package structural

import (
	"fmt"
	"io/fs"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// CUE evaluates the files once in a process: definitions, references and conjunctions become schemas. What is left for
// each document is a walk over its tree. Evaluating a whole definition for each document instead costs over ten times
// as much (docs/design.md, BenchmarkEffective), and its messages for one mistake are several (cue#1902, cue#3607).

// Evaluate makes one CUE package of the named files. Without a file of
// defaults, which AddDefaults reads as syntax, it takes half the time.
func Evaluate(ctx *cue.Context, files fs.ReadFileFS, names ...string) (cue.Value, error) {
	inst := build.NewContext().NewInstance("", nil)
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return cue.Value{}, err
		}
		file, err := parser.ParseFile(name, text, parser.ParseComments)
		if err != nil {
			return cue.Value{}, err
		}
		if err := inst.AddSyntax(file); err != nil {
			return cue.Value{}, err
		}
	}
	if err := inst.Complete(); err != nil {
		return cue.Value{}, err
	}
	root := ctx.BuildInstance(inst)
	return root, root.Err()
}

// Compiler makes schemas of the definitions of one CUE package.
type Compiler struct {
	root      cue.Value
	evaluator *evaluator
}

// NewCompiler evaluates the named files, which are a part of the program: a fault in them panics. formats are what the
// attribute @format names, for values that CUE has accepted.
func NewCompiler(files fs.ReadFileFS, formats map[string]func(text string) bool, names ...string) *Compiler {
	ctx := cuecontext.New()
	root, err := Evaluate(ctx, files, names...)
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return &Compiler{root: root, evaluator: &evaluator{ctx: ctx, formats: formats}}
}

// Definition compiles one definition, such as #Job.
func (c *Compiler) Definition(name string) *Schema {
	c.evaluator.mu.Lock() // another definition may be in use already
	defer c.evaluator.mu.Unlock()
	return c.schema(c.root.LookupPath(cue.ParsePath(name)))
}

func (c *Compiler) schema(v cue.Value) *Schema {
	switch kindOf(v) {
	case cue.StructKind:
		return c.mapping(v)
	case cue.ListKind:
		return &Schema{Kind: yamldoc.List, Elem: c.schema(elemOf(v)), limits: limitsOf(v)}
	case cue.TopKind:
		return &Schema{Kind: yamldoc.Map, open: true}
	default:
		return &Schema{Kind: yamldoc.String, scalar: newScalar(v, c.evaluator)}
	}
}

func (c *Compiler) mapping(v cue.Value) *Schema {
	s := &Schema{Kind: yamldoc.Map}
	s.OneOf, s.exact = alternatives(v)
	if pattern := v.LookupPath(cue.MakePath(cue.AnyString)); pattern.IncompleteKind() == cue.TopKind {
		s.open = true
		return s
	}
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	for fields.Next() {
		sel := fields.Selector()
		if sel.ConstraintType() == cue.PatternConstraint {
			s.Elem, s.keys = c.schema(fields.Value()), newScalar(sel.Pattern(), c.evaluator)
			return s
		}
		f := &Field{
			Name:     sel.Unquoted(),
			required: sel.ConstraintType() == cue.RequiredConstraint,
			Schema:   c.schema(fields.Value()),
		}
		for _, d := range fields.Value().Doc() {
			f.doc = strings.TrimSpace(strings.ReplaceAll(d.Text(), "\n", " "))
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}
