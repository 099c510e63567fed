// Package structural holds YAML against the structure of CUE definitions, and knows nothing of what they define.
//
// Input: CUE files, and the bytes of documents.
// Output: a [Schema] of each definition, the documents as trees of [Node], completed by the schema's defaults, or every
// mistake with its position.
// Invariant: each place yields one mistake at most, none hides another, and what is accepted is what CUE accepts.
package structural

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// CUE evaluates the files once in a process: definitions, references and conjunctions become schemas. What is left for
// each document is a walk over its tree, in which CUE evaluates every scalar that its definition restricts. Evaluating
// a whole definition for each document instead costs over ten times as much (docs/design.md, BenchmarkEffective), and
// its messages for one mistake are several (cue#1902, cue#3607).

// Schema is what one definition allows at one place.
type Schema struct {
	Kind   yamldoc.Kind
	open   bool // a mapping without a schema of its own: any field
	Fields []*Field
	Elem   *Schema  // of a list, or of a mapping's values
	OneOf  []string // fields of which at most one may be given,
	exact  bool     // or exactly one
	scalar *scalar
}

// Field is one field of a mapping.
type Field struct {
	Name     string
	doc      string
	required bool
	Schema   *Schema
	Value    *Node    // the default, if it is a literal,
	Same     []string // or the path of the field that it equals
	create   bool     // the mapping is there even when an author leaves it out
}

// Field returns a field by name, nil where there is none.
func (s *Schema) Field(name string) *Field {
	for _, f := range s.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

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
	switch v.IncompleteKind() {
	case cue.StructKind:
		return c.mapping(v)
	case cue.ListKind:
		return &Schema{Kind: yamldoc.List, Elem: c.schema(v.LookupPath(cue.MakePath(cue.AnyIndex)))}
	case cue.TopKind:
		return &Schema{Kind: yamldoc.Map, open: true}
	default:
		return &Schema{Kind: yamldoc.String, scalar: newScalar(v, c.evaluator)}
	}
}

func (c *Compiler) mapping(v cue.Value) *Schema {
	s := &Schema{Kind: yamldoc.Map}
	for _, a := range cue.Dereference(v).Attributes(cue.DeclAttr) {
		if a.Name() == "oneof" || a.Name() == "exactly" {
			s.OneOf, s.exact = strings.Split(a.Contents(), ","), a.Name() == "exactly"
		}
	}
	if pattern := v.LookupPath(cue.MakePath(cue.AnyString)); pattern.Exists() {
		if pattern.IncompleteKind() == cue.TopKind {
			s.open = true
		} else {
			s.Elem = c.schema(pattern)
		}
		return s
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	for fields.Next() {
		sel := fields.Selector()
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

// Names returns the field names of a mapping, sorted.
func (s *Schema) Names() []string {
	out := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = f.Name
	}
	slices.Sort(out)
	return out
}
