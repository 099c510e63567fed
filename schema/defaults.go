package schema

import (
	"fmt"
	"io/fs"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// addDefaults reads defaults.cue into the fields of the job's shape. The file has one form only, `name: *value | _`
// where value is a literal or a reference to another field, so that its syntax says all; TestDefaults holds the result
// against CUE's own evaluation of #Effective.
func addDefaults(s *shape, files fs.ReadFileFS, name string) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(name, text)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		effective, ok := f.Value.(*ast.BinaryExpr) // #Job & {…}
		if !ok {
			return fmt.Errorf("defaults.cue: %s is not a conjunction", f.Label)
		}
		if err := defaultsOf(s, effective.Y, nil); err != nil {
			return err
		}
	}
	return nil
}

func defaultsOf(s *shape, expr ast.Expr, at []string) error {
	switch x := expr.(type) {
	case *ast.StructLit:
		for _, elt := range x.Elts {
			decl, ok := elt.(*ast.Field)
			if !ok {
				continue // a comment
			}
			name, _, err := ast.LabelName(decl.Label)
			if err != nil {
				return err
			}
			f := s.field(name)
			if f == nil {
				return fmt.Errorf("defaults.cue: %s.%s is not in job.cue", strings.Join(at, "."), name)
			}
			if err := defaultOf(f, decl, append(at[:len(at):len(at)], name)); err != nil {
				return err
			}
		}
		return nil
	case *ast.ListLit:
		rest, ok := x.Elts[0].(*ast.Ellipsis)
		if !ok {
			return fmt.Errorf("defaults.cue: %s: a list of defaults is [...{}]", strings.Join(at, "."))
		}
		return defaultsOf(s.elem, rest.Type, at)
	}
	return fmt.Errorf("defaults.cue: %s: neither a mapping nor a list", strings.Join(at, "."))
}

func defaultOf(f *field, decl *ast.Field, at []string) error {
	either, ok := decl.Value.(*ast.BinaryExpr)
	if !ok {
		f.create = decl.Constraint == token.ILLEGAL // name: {…}, not name?: {…}
		return defaultsOf(f.shape, decl.Value, at)
	}
	star, ok := either.X.(*ast.UnaryExpr)
	if !ok || either.Op != token.OR || star.Op != token.MUL {
		return fmt.Errorf("defaults.cue: %s is not of the form *value | _", strings.Join(at, "."))
	}
	switch x := star.X.(type) {
	case *ast.BasicLit:
		f.value = &node{text: x.Value}
		switch x.Kind {
		case token.STRING:
			text, err := literal.Unquote(x.Value)
			if err != nil {
				return err
			}
			f.value.kind, f.value.text = yamldoc.String, text
		case token.TRUE, token.FALSE:
			f.value.kind = yamldoc.Bool
		default:
			f.value.kind = yamldoc.Int
		}
	case *ast.Ident: // a sibling
		f.same = append(at[:len(at)-1:len(at)-1], x.Name)
	case *ast.SelectorExpr: // from the top, spec.…
		f.same = selector(x)
	default:
		return fmt.Errorf("defaults.cue: %s: neither a literal nor a reference", strings.Join(at, "."))
	}
	return nil
}

func selector(expr ast.Expr) []string {
	switch x := expr.(type) {
	case *ast.SelectorExpr:
		name, _, err := ast.LabelName(x.Sel)
		if err != nil {
			return nil
		}
		return append(selector(x.X), name)
	case *ast.Ident:
		return []string{x.Name}
	}
	return nil
}

// complete adds what an author left out. References are followed from the root; a reference that ends in nothing
// leaves its field out, for the rules to report.
func complete(root *node, s *shape) {
	completeIn(root, s, root)
}

func completeIn(n *node, s *shape, root *node) {
	if s.kind == yamldoc.List {
		for _, item := range n.items {
			completeIn(item, s.elem, root)
		}
		return
	}
	for _, f := range s.fields {
		child := n.field(f.name)
		if child == nil {
			switch {
			case f.value != nil:
				child = f.value
			case f.same != nil:
				child = root.resolve(f.same, s, 0)
			case f.create:
				child = &node{kind: yamldoc.Map}
			}
			if child == nil {
				continue
			}
			n.add(f.name, position{}, child)
		}
		if f.shape.scalar == nil && !f.shape.open && f.shape.elem == nil || f.shape.kind == yamldoc.List {
			completeIn(child, f.shape, root)
		}
	}
}

// resolve returns the value of a referenced field: its own, or that of the sibling which it defaults to in turn. Two
// fields that refer to each other and are both left out have none.
func (n *node) resolve(ref []string, siblings *shape, hops int) *node {
	at := n
	for _, name := range ref {
		if at == nil {
			return nil
		}
		at = at.field(name)
	}
	if at != nil || hops > len(siblings.fields) {
		return at
	}
	if f := siblings.field(ref[len(ref)-1]); f != nil && f.same != nil {
		return n.resolve(f.same, siblings, hops+1)
	} else if f != nil {
		return f.value
	}
	return nil
}
