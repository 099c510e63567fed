package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// The limits of one scope. MaxBytes is that of a file. A reference makes a copy of what it names, so that a few bytes
// can demand many rules.
const (
	MaxBytes = 256 << 10
	maxRules = 4_000
	maxDepth = 64
)

// builder turns the files of one scope into rules.
type builder struct {
	types    Types
	hidden   map[string][]definition
	open     []string // hidden fields that are being built
	used     map[string]bool
	rules    int
	depth    int
	full     bool
	message  string // @message of the innermost field around
	inEither int    // alternatives around
	mistakes finding.List
}

// definition is the value of a field, in the file where it stands.
type definition struct {
	file *file
	at   position
	expr ast.Expr
}

// file is a CUE file. Its imports hold in no other.
type file struct {
	name    string
	rules   string // as Source.Rules
	imports []string
}

func (f *file) position(n ast.Node) position {
	p := n.Pos()
	return position{f.name, p.Line(), p.Column(), f.rules}
}

// origin is what rules of a node report.
func (b *builder) origin(f *file, n ast.Node) origin { return origin{f.position(n), b.message} }

func (b *builder) refuse(f *file, n ast.Node, format string, args ...any) {
	b.mistakes = append(b.mistakes, f.position(n).mistake(format, args...))
}

// scope reads files that share hidden fields and adds their rules to a policy.
func (b *builder) scope(sources []Source, p *Policy) {
	b.used = map[string]bool{}
	roots := map[string][]definition{}
	for _, s := range sources {
		b.file(s, roots)
	}
	if len(b.mistakes) > 0 {
		return
	}
	for _, d := range roots["job"] {
		p.job = append(p.job, b.demanding("job", d, goType{t: b.types.Job})...)
	}
	for _, d := range roots["pod"] {
		p.pod = append(p.pod, b.demanding("pod", d, goType{t: b.types.Pod})...)
	}
	for _, d := range roots["object"] {
		b.objects(d, p)
	}
	for _, name := range slices.Sorted(maps.Keys(b.hidden)) {
		if d := b.hidden[name][0]; !b.used[name] && len(b.mistakes) == 0 {
			unused := d.at.mistake("%s: no rule refers to this field, so it has no effect", name)
			b.mistakes = append(b.mistakes, unused)
		}
	}
}

// file sorts the declarations of a file.
func (b *builder) file(s Source, roots map[string][]definition) {
	f := &file{name: s.Name, rules: s.Rules}
	if len(s.Text) > MaxBytes {
		at := position{file: s.Name, line: 1, column: 1}
		b.mistakes = append(b.mistakes, at.mistake("a policy file of %d bytes exceeds the limit of %d", len(s.Text),
			MaxBytes))
		return
	}
	parsed, err := parser.ParseFile(s.Name, s.Text)
	if err != nil {
		for _, e := range errors.Errors(err) {
			format, args := e.Msg()
			at := position{file: s.Name, line: e.Position().Line(), column: e.Position().Column()}
			b.mistakes = append(b.mistakes, at.mistake("not CUE: %s", fmt.Sprintf(format, args...)))
		}
		return
	}
	empty := true
	for _, decl := range parsed.Decls {
		switch d := decl.(type) {
		case *ast.Package, *ast.CommentGroup:
		case *ast.ImportDecl:
			b.imports(f, d)
		case *ast.Field:
			empty = false
			b.root(f, d, roots)
		default:
			b.refuseDecl(f, decl)
		}
	}
	if empty && len(b.mistakes) == 0 {
		b.mistakes = append(b.mistakes, position{file: s.Name, line: 1, column: 1}.mistake(
			"the file has no rules: write them below job, pod or object"))
	}
}

// packages are those whose functions a policy can use.
var packages = []string{"list", "strings"}

func (b *builder) imports(f *file, d *ast.ImportDecl) {
	for _, spec := range d.Specs {
		path, err := literal.Unquote(spec.Path.Value)
		switch {
		case err != nil || !slices.Contains(packages, path):
			b.refuse(f, spec, "import %s: a policy can import list and strings only", spec.Path.Value)
		case spec.Name != nil:
			b.refuse(f, spec, "import %s: a policy cannot rename an import", spec.Path.Value)
		default:
			f.imports = append(f.imports, path)
		}
	}
}

// root is a field at the top of a file: job, pod, object, or a hidden field.
func (b *builder) root(f *file, d *ast.Field, roots map[string][]definition) {
	name, isIdent, err := ast.LabelName(d.Label)
	def := definition{f, f.position(d), d.Value}
	switch {
	case err != nil || !isIdent:
		b.refuse(f, d, "only job, pod, object and hidden fields such as _container can stand here")
	case d.Constraint != token.ILLEGAL || d.Alias != nil || len(d.Attrs) > 0:
		b.refuse(f, d, "%s: write %s: {...}, without ?, !, alias or attribute", name, name)
	case slices.Contains([]string{"job", "pod", "object"}, name):
		roots[name] = append(roots[name], def)
	case strings.HasPrefix(name, "_#") || strings.HasPrefix(name, "#"):
		b.refuse(f, d, "%s: a definition forbids all fields that it does not list; write a hidden field, such as _%s, "+
			"and close({...}) where you mean that", name, strings.TrimLeft(name, "_#"))
	case strings.HasPrefix(name, "_"):
		b.hidden[name] = append(b.hidden[name], def)
	default:
		b.refuse(f, d, "%s: only job, pod, object and hidden fields such as _%s can stand here%s", name, name,
			spelling.Suggest(name, []string{"job", "pod", "object"}))
	}
}

// demanding are the rules of a definition. One that every value satisfies is a mistake.
func (b *builder) demanding(name string, d definition, t goType) all {
	before := len(b.mistakes)
	rules := b.value(d.file, d.expr, t)
	if len(b.mistakes) == before && !rules.demand() {
		b.mistakes = append(b.mistakes, d.at.mistake("%s: has no rules", name))
	}
	return rules
}

// demand reports whether rules refuse any value of their type.
func (a all) demand() bool {
	for _, r := range a {
		switch r := r.(type) {
		case *mapping:
			if r.closed || slices.ContainsFunc(r.fields, func(f field) bool {
				return f.never || f.presence == required || f.rules.demand()
			}) || slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.rules.demand() }) {
				return true
			}
		case *items:
			if r.rules.demand() {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// objects are the rules below object, by kind.
func (b *builder) objects(d definition, p *Policy) {
	s, ok := d.expr.(*ast.StructLit)
	if !ok {
		b.refuse(d.file, d.expr, "object: must be a mapping of kinds, such as object: Service: {...}")
		return
	}
	if len(s.Elts) == 0 {
		b.refuse(d.file, d.expr, "object: has no rules: write a kind and its rules, such as Service: {...}")
	}
	for _, decl := range s.Elts {
		f, ok := decl.(*ast.Field)
		if !ok {
			b.refuseDecl(d.file, decl)
			continue
		}
		kind, _, err := ast.LabelName(f.Label)
		if err != nil || f.Constraint != token.ILLEGAL || f.Alias != nil || len(f.Attrs) > 0 {
			b.refuse(d.file, f, "object: write a kind and its rules, such as Service: {...}")
			continue
		}
		types := b.types.Object(kind)
		if len(types) == 0 {
			b.refuse(d.file, f, "object.%s: tegen renders no objects of this kind%s", kind,
				spelling.Suggest(kind, b.types.Kinds))
		}
		var rules all
		before := len(b.mistakes)
		for i, t := range types { // all of them have to have each field, and the rules are the same
			at := definition{d.file, d.file.position(f), f.Value}
			if built := b.demanding("object."+kind, at, goType{t: t}); i == 0 {
				rules = built
			}
		}
		if len(types) > 1 && len(b.mistakes) > before {
			named := slices.DeleteFunc(slices.Clone(b.types.Kinds), func(k string) bool {
				return !strings.HasPrefix(k, kind+".")
			})
			b.refuse(d.file, f, "object.%s: several kinds have this name, and each must have the fields: write \"%s\" "+
				"for one of them", kind, strings.Join(named, "\" or \""))
		}
		p.objects[kind] = append(p.objects[kind], rules...)
	}
}

// value builds the rules of an expression for a place of a type.
func (b *builder) value(f *file, e ast.Expr, t goType) all {
	if b.rules++; b.rules > maxRules || b.depth >= maxDepth {
		if !b.full {
			b.refuse(f, e, "the policy exceeds the limit of %d rules, or of %d levels, with all that it refers to: "+
				"write fewer", maxRules, maxDepth)
		}
		b.full = true
	}
	if b.full {
		return nil
	}
	b.depth++
	defer func() { b.depth-- }()
	switch e := e.(type) {
	case *ast.ParenExpr:
		return b.value(f, e.X, t)
	case *ast.BinaryExpr:
		return b.binary(f, e, t)
	case *ast.Ident:
		return b.ident(f, e, t)
	case *ast.StructLit:
		return b.mapping(f, e, t)
	case *ast.ListLit:
		return b.list(f, e, t)
	case *ast.CallExpr:
		return b.call(f, e, t)
	case *ast.SelectorExpr: // a validator without arguments
		return b.call(f, &ast.CallExpr{Fun: e}, t)
	case *ast.UnaryExpr, *ast.BasicLit:
		return b.scalar(f, e, t)
	case *ast.BottomLit:
		b.refuse(f, e, "_|_ forbids a field: write it as the whole value of an optional field, such as hostPath?: _|_")
	case *ast.Interpolation:
		b.refuse(f, e, "a policy cannot use interpolation: write the text")
	default:
		b.refuse(f, e, "a policy cannot use this expression")
	}
	return nil
}

// binary is a conjunction or a disjunction.
func (b *builder) binary(f *file, e *ast.BinaryExpr, t goType) all {
	switch e.Op {
	case token.AND:
		var rules all
		for _, x := range operands(e, e.Op) {
			rules = append(rules, b.value(f, x, t)...)
		}
		return rules
	case token.OR:
		d := &either{by: b.origin(f, e.X)}
		b.inEither++
		defer func() { b.inEither-- }()
		for _, x := range operands(e, e.Op) {
			d.rules = append(d.rules, b.value(f, x, t))
		}
		return all{d}
	}
	b.refuse(f, e, "a policy cannot use the operator %s: it has & and |", e.Op)
	return nil
}

// operands are those of a chain of one operator, such as "a" | "b" | "c".
func operands(e ast.Expr, op token.Token) (chain []ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.BinaryExpr:
			if x.Op == op {
				chain = append(chain, operands(x.Y, op)...)
				e = x.X
				continue
			}
		}
		chain = append(chain, e)
		slices.Reverse(chain)
		return chain
	}
}

// typeNames are the predeclared types of CUE.
var typeNames = map[string]kinds{
	"string": isString, "int": isInt, "number": isNumber, "bool": isBool,
}

func (b *builder) ident(f *file, e *ast.Ident, t goType) all {
	k, isType := typeNames[e.Name]
	switch {
	case e.Name == "_":
		return nil
	case e.Name == "float":
		b.refuse(f, e, "float: whole numbers have no form of their own in JSON; write number")
	case isType:
		return b.kind(f, e, k, t)
	case len(b.hidden[e.Name]) > 0:
		return b.reference(f, e, t)
	case strings.HasPrefix(e.Name, "_") && !strings.HasPrefix(e.Name, "_#"):
		b.refuse(f, e, "%s: no file of the policy has this field%s", e.Name,
			spelling.Suggest(e.Name, slices.Collect(maps.Keys(b.hidden))))
	default:
		b.refuse(f, e, "%s: a policy can refer to hidden fields at the top of its files only", e.Name)
	}
	return nil
}

// reference is what a hidden field says, once more.
func (b *builder) reference(f *file, e *ast.Ident, t goType) (rules all) {
	if slices.Contains(b.open, e.Name) {
		b.refuse(f, e, "%s refers to itself", e.Name)
		return nil
	}
	b.used[e.Name] = true
	b.open = append(b.open, e.Name)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	for _, d := range b.hidden[e.Name] {
		rules = append(rules, b.value(d.file, d.expr, t)...)
	}
	return rules
}

// kind is a type of CUE as a constraint.
func (b *builder) kind(f *file, e ast.Node, k kinds, t goType) all {
	if t.isQuantity() {
		b.refuse(f, e, "a quantity is compared as a number: write a limit, such as <=64Gi, or _ for any")
		return nil
	}
	if !b.fits(f, e, k, t) {
		return nil
	}
	return all{&scalar{
		by: b.origin(f, e), demand: "be " + k.String(), kinds: k, cel: expression{text: "true"}.guarded(k, t),
		holds: func(v any) bool { return kindOf(v)&k != 0 },
	}}
}

// fits refuses a constraint on kinds that values of the type never have.
func (b *builder) fits(f *file, e ast.Node, k kinds, t goType) bool {
	if t.isDuration() {
		b.refuse(f, e, "a duration has several spellings, such as 1h and 60m, and tegen does not compare them: write "+
			"_ to require the field, or _|_ to forbid it")
		return false
	}
	if t.kinds()&k != 0 {
		return true
	}
	b.refuse(f, e, "the field is %s and never %s", t.kinds(), k)
	return false
}

// list is [...C].
func (b *builder) list(f *file, e *ast.ListLit, t goType) all {
	if len(e.Elts) == 1 {
		if rest, ok := e.Elts[0].(*ast.Ellipsis); ok {
			if !b.fits(f, e, isList, t) {
				return nil
			}
			l := &items{by: b.origin(f, e), typed: t.kinds() == isList}
			if rest.Type != nil {
				l.rules = b.value(f, rest.Type, t.item())
			}
			return all{l}
		}
	}
	b.refuse(f, e, "a policy cannot list items one by one: write [...C] for a constraint C on every item")
	return nil
}

// refuseDecl refuses a declaration that is no field.
func (b *builder) refuseDecl(f *file, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.Comprehension:
		b.refuse(f, d, "a policy cannot use if and for: write alternatives with |")
	case *ast.LetClause:
		b.refuse(f, d, "a policy cannot use let: write a hidden field, such as _name, at the top")
	case *ast.Ellipsis:
		b.refuse(f, d, "a policy cannot constrain other fields with ...: write a pattern, such as [string]: C")
	case *ast.Attribute:
		b.refuse(f, d, "write the attribute behind the value of a field")
	case *ast.EmbedDecl:
		b.refuse(f, d, "only fields can stand here")
	default:
		b.refuse(f, decl, "a policy cannot use this declaration")
	}
}
