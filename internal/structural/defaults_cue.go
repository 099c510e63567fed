//go:build !js

package structural

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

// AddDefaults reads a file of defaults into the fields of a schema. The file has one form only, `name: *value | _`
// where value is a literal or a reference to another field, so that its syntax says all; TestDefaults holds the result
// against CUE's own evaluation of #Effective.
func AddDefaults(s *Schema, files fs.ReadFileFS, name string) error {
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
		effective, ok := f.Value.(*ast.BinaryExpr) // #Definition & {…}
		if !ok {
			return fmt.Errorf("%s: %s is not a conjunction", name, f.Label)
		}
		if err := defaultsOf(s, effective.Y, nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func defaultsOf(s *Schema, expr ast.Expr, at []string) error {
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
			f := s.Field(name)
			if f == nil {
				return fmt.Errorf("%s.%s is no field of the definition", strings.Join(at, "."), name)
			}
			if err := defaultOf(f, decl, append(at[:len(at):len(at)], name)); err != nil {
				return err
			}
		}
		return nil
	case *ast.ListLit:
		rest, ok := x.Elts[0].(*ast.Ellipsis)
		if !ok {
			return fmt.Errorf("%s: a list of defaults is [...{}]", strings.Join(at, "."))
		}
		return defaultsOf(s.Elem, rest.Type, at)
	}
	return fmt.Errorf("%s: neither a mapping nor a list", strings.Join(at, "."))
}

func defaultOf(f *Field, decl *ast.Field, at []string) error {
	either, ok := decl.Value.(*ast.BinaryExpr)
	if !ok {
		f.create = decl.Constraint == token.ILLEGAL // name: {…}, not name?: {…}
		return defaultsOf(f.Schema, decl.Value, at)
	}
	star, ok := either.X.(*ast.UnaryExpr)
	if !ok || either.Op != token.OR || star.Op != token.MUL {
		return fmt.Errorf("%s is not of the form *value | _", strings.Join(at, "."))
	}
	switch x := star.X.(type) {
	case *ast.BasicLit:
		f.Value = &Node{Text: x.Value}
		switch x.Kind {
		case token.STRING:
			text, err := literal.Unquote(x.Value)
			if err != nil {
				return err
			}
			f.Value.Kind, f.Value.Text = yamldoc.String, text
		case token.TRUE, token.FALSE:
			f.Value.Kind = yamldoc.Bool
		default:
			f.Value.Kind = yamldoc.Int
		}
	case *ast.Ident: // a sibling
		f.Same = append(at[:len(at)-1:len(at)-1], x.Name)
	case *ast.SelectorExpr: // from the top, spec.…
		f.Same = selector(x)
	default:
		return fmt.Errorf("%s: neither a literal nor a reference", strings.Join(at, "."))
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
