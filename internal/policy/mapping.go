package policy

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/tegen-dev/tegen/internal/spelling"
)

// mapping builds the rules of {...}.
func (b *builder) mapping(f *file, e *ast.StructLit, t goType) all {
	if !b.fits(f, e, isMapping, t) {
		return nil
	}
	m := &mapping{by: b.origin(f, e), typed: t.kinds() == isMapping}
	rules := all{m}
	for _, decl := range e.Elts {
		switch d := decl.(type) {
		case *ast.CommentGroup:
		case *ast.Field:
			b.field(f, d, t, m)
		case *ast.Ellipsis:
			if d.Type != nil {
				b.refuseDecl(f, d)
			}
		case *ast.EmbedDecl:
			if _, isComprehension := d.Expr.(*ast.Comprehension); isComprehension {
				b.refuseDecl(f, d.Expr.(*ast.Comprehension))
				continue
			}
			rules = append(rules, b.value(f, d.Expr, t)...)
		default:
			b.refuseDecl(f, decl)
		}
	}
	return rules
}

// field builds one field of a mapping.
func (b *builder) field(f *file, d *ast.Field, t goType, m *mapping) {
	message, ok := b.messageOf(f, d)
	if !ok {
		return
	}
	if message != "" {
		outer := b.message
		b.message = message
		defer func() { b.message = outer }()
	}
	if _, isAlias := d.Label.(*ast.Alias); isAlias || d.Alias != nil {
		b.refuse(f, d, "a policy cannot use aliases")
		return
	}
	if key, isPattern := d.Label.(*ast.ListLit); isPattern {
		b.pattern(f, d, key, t, m)
		return
	}
	name, isIdent, err := ast.LabelName(d.Label)
	switch {
	case err != nil:
		b.refuse(f, d, "a policy cannot compute the name of a field")
		return
	case isIdent && strings.HasPrefix(name, "_"):
		b.refuse(f, d, "%s: hidden fields stand at the top of a file only", name)
		return
	case isIdent && strings.HasPrefix(name, "#"):
		b.refuse(f, d, "%s: a policy cannot use definitions", name)
		return
	}
	below, known := t.field(name)
	newer, older := t.renamed(name)
	switch {
	case !known:
		b.refuse(f, d, "%s: unknown field%s", name, b.suggestion(name, t))
		return
	case newer != "":
		b.refuse(f, d, "%s: the old name of %s; rules for %s check both", name, newer, newer)
		return
	}
	if name == "podTemplate" && below.kinds() == anyKind {
		below = goType{t: b.types.Pod} // of a job, as its author wrote it
	}
	out := field{by: b.origin(f, d), name: name, encoded: below.encoded(), older: older}
	switch d.Constraint {
	case token.OPTION:
		out.presence = optional
	case token.NOT:
		out.presence = required
	}
	if _, out.never = d.Value.(*ast.BottomLit); out.never {
		if out.presence != optional {
			b.refuse(f, d, "%s: to forbid the field, write %s?: _|_", name, name)
			return
		}
		if below.always() {
			b.refuse(f, d, "%s: every object has this field, so that no object could pass; forbid fields in it", name)
			return
		}
		b.rules++
		m.fields = append(m.fields, out)
		return
	}
	before := len(b.mistakes)
	out.rules = b.value(f, d.Value, below)
	if len(b.mistakes) == before && b.checkPresence(f, d, &out, below) {
		m.fields = append(m.fields, out)
	}
}

// checkPresence refuses fields whose presence CUE and the encoding of objects see differently from what was meant.
func (b *builder) checkPresence(f *file, d *ast.Field, out *field, t goType) bool {
	switch out.presence {
	case regular:
		composite := structure(out.rules)
		switch {
		case b.inEither > 0:
			b.refuse(f, d, "%s: CUE fills in a field without ? and !; in an alternative write %s? to check the "+
				"value if it is set, or %s! to require the field", out.name, out.name, out.name)
			return false
		case composite == isMapping:
		case composite == isList:
			out.list = true
		default:
			b.refuse(f, d, "%s: CUE fills in a field without ? and !, so that it would hold where the field is not "+
				"set; write %s? to check the value if it is set, or %s! to require the field", out.name, out.name,
				out.name)
			return false
		}
	case required:
		zero := zeroOf(t.kinds())
		if t.omitEmpty && zero != nil && onlyZero(out.rules, zero) {
			b.refuse(f, d, "%s: Kubernetes leaves this value out, so that no object could pass; write %s?", out.name,
				out.name)
			return false
		}
	}
	return true
}

// structure is isMapping or isList where rules demand one of them.
func structure(rules []rule) (k kinds) {
	for _, r := range rules {
		switch r := r.(type) {
		case *mapping:
			k |= isMapping
		case *items:
			k |= isList
		case *scalar:
			if r.kinds == isList {
				k |= isList
			}
		case *either:
			for _, x := range r.rules {
				k |= structure(x)
			}
		}
	}
	return k
}

// zeroOf is the value of a kind that omitempty leaves out, nil where there is none.
func zeroOf(k kinds) any {
	switch k {
	case isBool:
		return false
	case isString:
		return ""
	case isInt:
		return jsonNumber("0")
	}
	return nil
}

// onlyZero reports whether the zero value is the only one that satisfies rules.
func onlyZero(rules all, zero any) bool {
	for _, r := range rules {
		if s, ok := r.(*scalar); ok && s.value != nil && equal(s.value, zero) {
			return true
		}
	}
	return false
}

// pattern builds [C]: D.
func (b *builder) pattern(f *file, d *ast.Field, key *ast.ListLit, t goType, m *mapping) {
	if len(key.Elts) != 1 || d.Constraint != token.ILLEGAL {
		b.refuse(f, d, "write a pattern as [C]: D, such as [string]: string")
		return
	}
	if !t.isOpen() {
		b.refuse(f, d, "a pattern is for mappings whose names are free, such as labels: name the fields")
		return
	}
	value, _ := t.field("x")
	names := b.value(f, key.Elts[0], stringType)
	if _, forbidden := d.Value.(*ast.BottomLit); forbidden {
		m.patterns = append(m.patterns, pattern{names, all{&scalar{
			by: b.origin(f, d), demand: "not be set", holds: func(any) bool { return false }, kinds: value.kinds(),
			cel: expression{text: "false"},
		}}})
		return
	}
	m.patterns = append(m.patterns, pattern{names, b.value(f, d.Value, value)})
}

// messageOf is the @message of a field.
func (b *builder) messageOf(f *file, d *ast.Field) (text string, ok bool) {
	for _, a := range d.Attrs {
		name, body := a.Split()
		if name != "message" || text != "" {
			b.refuse(f, a, "@%s: a field has one attribute, @message(\"…\")", name)
			return "", false
		}
		var err error
		if text, err = literal.Unquote(strings.TrimSpace(body)); err != nil || strings.TrimSpace(text) == "" {
			b.refuse(f, a, "@message: must be a text in quotes, such as @message(\"ask the platform team\")")
			return "", false
		}
	}
	return text, true
}

func (b *builder) suggestion(name string, t goType) string {
	var names []string
	for n := range t.fields() {
		names = append(names, n)
	}
	slices.Sort(names)
	return spelling.Suggest(name, names)
}
