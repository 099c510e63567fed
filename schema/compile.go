package schema

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

// The CUE files hold the contract. CUE evaluates them once in a process: definitions, references and conjunctions
// become shapes. What is left for each job is a walk over its tree, in which CUE evaluates every scalar that its
// definition restricts. Evaluating the whole of #Effective for each job instead costs over ten times as much
// (docs/design.md, BenchmarkEffective), and its messages for one mistake are several (cue#1902, cue#3607).

// shape is what one definition allows at one place.
type shape struct {
	kind   yamldoc.Kind
	open   bool // a mapping without a schema of its own: any field
	fields []*field
	elem   *shape   // of a list, or of a mapping's values
	oneOf  []string // fields of which at most one may be given,
	exact  bool     // or exactly one
	scalar *scalar
}

// field is one field of a mapping.
type field struct {
	name     string
	doc      string
	required bool
	shape    *shape
	value    *node    // the default, if it is a literal,
	same     []string // or the path of the field that it equals
	create   bool     // the mapping is there even when an author leaves it out
}

func (s *shape) field(name string) *field {
	for _, f := range s.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// evaluate makes one CUE package of the named files. Without defaults.cue, which addDefaults reads as syntax, it takes
// half the time.
func evaluate(ctx *cue.Context, files fs.ReadFileFS, names ...string) (cue.Value, error) {
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

type compiler struct {
	root      cue.Value
	evaluator *evaluator
}

// newCompiler evaluates the named files, which are a part of the program: a fault in them panics. formats are what the
// attribute @format names, for values that CUE has accepted.
func newCompiler(files fs.ReadFileFS, formats map[string]func(text string) bool, names ...string) *compiler {
	ctx := cuecontext.New()
	root, err := evaluate(ctx, files, names...)
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return &compiler{root: root, evaluator: &evaluator{ctx: ctx, formats: formats}}
}

func (c *compiler) definition(name string) *shape {
	c.evaluator.mu.Lock() // an environment may be compiled while jobs are checked
	defer c.evaluator.mu.Unlock()
	return c.shape(c.root.LookupPath(cue.ParsePath(name)))
}

func (c *compiler) shape(v cue.Value) *shape {
	switch v.IncompleteKind() {
	case cue.StructKind:
		return c.mapping(v)
	case cue.ListKind:
		return &shape{kind: yamldoc.List, elem: c.shape(v.LookupPath(cue.MakePath(cue.AnyIndex)))}
	case cue.TopKind:
		return &shape{kind: yamldoc.Map, open: true}
	default:
		return &shape{kind: yamldoc.String, scalar: newScalar(v, c.evaluator)}
	}
}

func (c *compiler) mapping(v cue.Value) *shape {
	s := &shape{kind: yamldoc.Map}
	for _, a := range cue.Dereference(v).Attributes(cue.DeclAttr) {
		if a.Name() == "oneof" || a.Name() == "exactly" {
			s.oneOf, s.exact = strings.Split(a.Contents(), ","), a.Name() == "exactly"
		}
	}
	if pattern := v.LookupPath(cue.MakePath(cue.AnyString)); pattern.Exists() {
		if pattern.IncompleteKind() == cue.TopKind {
			s.open = true
		} else {
			s.elem = c.shape(pattern)
		}
		return s
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	for fields.Next() {
		sel := fields.Selector()
		f := &field{
			name:     sel.Unquoted(),
			required: sel.ConstraintType() == cue.RequiredConstraint,
			shape:    c.shape(fields.Value()),
		}
		for _, d := range fields.Value().Doc() {
			f.doc = strings.TrimSpace(strings.ReplaceAll(d.Text(), "\n", " "))
		}
		s.fields = append(s.fields, f)
	}
	return s
}

// names returns the field names of a mapping, sorted.
func (s *shape) names() []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.name
	}
	slices.Sort(out)
	return out
}
