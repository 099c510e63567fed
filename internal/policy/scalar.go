package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/tegen-dev/tegen/internal/quantity"
)

var stringType = goType{t: reflect.TypeFor[string]()}

func jsonNumber(text string) json.Number { return json.Number(text) }

// scalar builds a constant, or an operator with a constant behind it.
func (b *builder) scalar(f *file, e ast.Expr, t goType) all {
	by := b.origin(f, e)
	if u, ok := e.(*ast.UnaryExpr); ok {
		switch u.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			return b.bound(f, u, t)
		case token.NEQ:
			return b.constant(f, u.X, t, by, true)
		case token.MAT, token.NMAT:
			return b.match(f, u, t)
		case token.SUB, token.ADD:
		case token.MUL:
			b.refuse(f, e, "a policy cannot use defaults: it checks values and sets none")
			return nil
		default:
			b.refuse(f, e, "a policy cannot use the operator %s here", u.Op)
			return nil
		}
	}
	return b.constant(f, e, t, by, false)
}

// constantOf is the value of a literal: a string, a json.Number, a bool or null. ok is false for anything else.
func constantOf(e ast.Expr) (v any, ok bool) {
	sign := ""
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.UnaryExpr:
			if x.Op != token.SUB && x.Op != token.ADD {
				return nil, false
			}
			if x.Op == token.SUB {
				sign += "-"
			}
			lit, isLit := x.X.(*ast.BasicLit)
			if !isLit || lit.Kind != token.INT && lit.Kind != token.FLOAT || len(sign) > 1 {
				return nil, false
			}
			e = x.X
			continue
		case *ast.BasicLit:
			return literalOf(x, sign)
		}
		return nil, false
	}
}

func literalOf(x *ast.BasicLit, sign string) (any, bool) {
	switch x.Kind {
	case token.STRING:
		text, err := literal.Unquote(x.Value)
		if err != nil || strings.HasPrefix(strings.TrimLeft(x.Value, "#"), "'") { // bytes
			return nil, false
		}
		return text, true
	case token.INT, token.FLOAT:
		var n literal.NumInfo
		if err := literal.ParseNum(x.Value, &n); err != nil {
			return nil, false
		}
		if quantity.Check(n.String()) != nil {
			return nil, false
		}
		return jsonNumber(sign + n.String()), true
	case token.TRUE, token.FALSE:
		return x.Kind == token.TRUE, true
	case token.NULL:
		return nil, true
	}
	return nil, false
}

// operand is the constant behind an operator.
func (b *builder) operand(f *file, e ast.Expr) (any, bool) {
	v, ok := constantOf(e)
	if !ok {
		b.refuse(f, e, "must be a string, number or boolean that is written here")
	}
	return v, ok
}

// constant is a value, or with not every other one.
func (b *builder) constant(f *file, e ast.Expr, t goType, by origin, not bool) all {
	v, ok := b.operand(f, e)
	if !ok {
		return nil
	}
	if v == nil {
		b.refuse(f, e, "null: no field is null in an object; to forbid a field, write _|_")
		return nil
	}
	if t.isQuantity() {
		return b.quantityConstant(f, e, v, by, not)
	}
	if _, isBool := v.(bool); isBool && not {
		b.refuse(f, e, "write %v in place of !=%v", v != true, v)
		return nil
	}
	if !b.fits(f, e, kindOf(v), t) {
		return nil
	}
	s := &scalar{by: by, demand: "be " + show(v), kinds: family(v), value: v, cel: operator("==", v)}
	s.holds = func(x any) bool { return equal(x, v) }
	if not {
		// != demands the kind of its operand, as in CUE.
		s.demand, s.value, s.excludes = "not be "+show(v), nil, v
		s.holds = func(x any) bool { return !equal(x, v) && kindOf(x)&s.kinds != 0 }
		s.cel = operator("!=", v).guarded(s.kinds, t)
	}
	return all{s}
}

func (b *builder) quantityConstant(f *file, e ast.Expr, v any, by origin, not bool) all {
	want, ok := number(v, true)
	if !ok {
		b.refuse(f, e, "%s is no quantity", show(v))
		return nil
	}
	s := &scalar{by: by, demand: "be " + text(v), kinds: isString | isNumber, value: v}
	s.holds = func(x any) bool { got, ok := number(x, true); return ok && (got.Cmp(want) == 0) != not }
	s.cel = quantityOperator("==", want, text(v))
	if not {
		s.demand, s.value = "not be "+text(v), nil
		s.cel = quantityOperator("!=", want, text(v))
	}
	return all{s}
}

// bound is <, <=, > or >= a number.
func (b *builder) bound(f *file, u *ast.UnaryExpr, t goType) all {
	v, ok := b.operand(f, u.X)
	if !ok {
		return nil
	}
	n, isNum := v.(json.Number)
	if !isNum {
		b.refuse(f, u.X, "a limit must be a number, such as 32 or 64Gi without quotes")
		return nil
	}
	isQuantity, allowed := t.isQuantity(), isNumber
	if isQuantity {
		allowed |= isString
	} else if !b.fits(f, u, isNumber, t) {
		return nil
	}
	than, _ := number(n, false)
	op := u.Op
	words := map[token.Token]string{
		token.LSS: "less than", token.LEQ: "at most", token.GTR: "more than", token.GEQ: "at least",
	}
	shown := n.String()
	if lit, isLit := u.X.(*ast.BasicLit); isLit {
		shown = lit.Value
	}
	cel := operator(op.String(), n).guarded(isNumber, t)
	if isQuantity {
		cel = quantityOperator(op.String(), than, shown)
	}
	return all{&scalar{
		by: b.origin(f, u), demand: "be " + words[op] + " " + shown, kinds: allowed, cel: cel,
		holds: func(x any) bool {
			got, ok := number(x, isQuantity)
			return ok && compare(op, got.Cmp(than))
		},
		bound: &bound{
			upper: op == token.LSS || op == token.LEQ, strict: op == token.LSS || op == token.GTR, than: than,
		},
	}}
}

func compare(op token.Token, c int) bool {
	switch op {
	case token.LSS:
		return c < 0
	case token.LEQ:
		return c <= 0
	case token.GTR:
		return c > 0
	}
	return c >= 0
}

// match is =~ or !~ a regular expression.
func (b *builder) match(f *file, u *ast.UnaryExpr, t goType) all {
	v, ok := b.operand(f, u.X)
	if !ok {
		return nil
	}
	pattern, isText := v.(string)
	if !isText {
		b.refuse(f, u.X, "a regular expression must be a string")
		return nil
	}
	if t.isQuantity() {
		b.refuse(f, u, "a quantity has several spellings: write a limit, such as <=64Gi")
		return nil
	}
	if !b.fits(f, u, isString, t) {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		b.refuse(f, u.X, "%v", err)
		return nil
	}
	want, verb := u.Op == token.MAT, "match "
	if !want {
		verb = "not match "
	}
	cel := call("%[1]s.matches(%[2]s)", pattern)
	if !want {
		cel = call("!%[1]s.matches(%[2]s)", pattern)
	}
	return all{&scalar{by: b.origin(f, u), demand: verb + pattern, kinds: isString, cel: cel, holds: func(x any) bool {
		s, ok := x.(string)
		return ok && re.MatchString(s) == want
	}}}
}

// validator is a function of CUE's packages that a policy can use, with its one argument n or s.
type validator struct {
	kinds  kinds
	takes  kinds // of the argument; 0 for none
	demand string
	cel    string // with the value and the argument
	holds  func(v any, n int, s string) bool
}

func countItems(f func(length, n int) bool, demand, cel string) validator {
	return validator{isList, isInt, demand, cel, func(v any, n int, _ string) bool { return f(len(v.([]any)), n) }}
}

func runes(f func(length, n int) bool, demand, cel string) validator {
	return validator{isString, isInt, demand, cel, func(v any, n int, _ string) bool {
		return f(utf8.RuneCountInString(v.(string)), n)
	}}
}

func affix(f func(text, s string) bool, demand, cel string) validator {
	return validator{isString, isString, demand, cel, func(v any, _ int, s string) bool { return f(v.(string), s) }}
}

func atMost(length, n int) bool  { return length <= n }
func atLeast(length, n int) bool { return length >= n }

// validators are all of them, by package and name.
var validators = map[string]validator{
	"list.MaxItems": countItems(atMost, "have at most %v items", "size(%[1]s) <= %[2]s"),
	"list.MinItems": countItems(atLeast, "have at least %v items", "size(%[1]s) >= %[2]s"),
	"list.UniqueItems": {
		isList, 0, "have no item twice", "%[1]s.all(a, %[1]s.exists_one(b, b == a))",
		func(v any, _ int, _ string) bool { return unique(v) },
	},
	"strings.MaxRunes":  runes(atMost, "have at most %v characters", "size(%[1]s) <= %[2]s"),
	"strings.MinRunes":  runes(atLeast, "have at least %v characters", "size(%[1]s) >= %[2]s"),
	"strings.HasPrefix": affix(strings.HasPrefix, "start with %q", "%[1]s.startsWith(%[2]s)"),
	"strings.HasSuffix": affix(strings.HasSuffix, "end with %q", "%[1]s.endsWith(%[2]s)"),
	"strings.Contains":  affix(strings.Contains, "contain %q", "%[1]s.contains(%[2]s)"),
}

// call is a validator, or close({...}).
func (b *builder) call(f *file, e *ast.CallExpr, t goType) all {
	if fun, ok := e.Fun.(*ast.Ident); ok {
		if fun.Name == "close" && len(e.Args) == 1 {
			return b.closed(f, e, t)
		}
		b.refuse(f, e, "%s: a policy cannot use this function", fun.Name)
		return nil
	}
	name := selector(e.Fun)
	v, known := validators[name]
	pkg, _, _ := strings.Cut(name, ".")
	switch {
	case !known:
		b.refuse(f, e, "a policy can use the functions %s", strings.Join(validatorNames(), ", "))
		return nil
	case !slices.Contains(f.imports, pkg):
		b.refuse(f, e, "%s: the file does not import %q", name, pkg)
		return nil
	case t.isQuantity(), !b.fits(f, e, v.kinds, t):
		if t.isQuantity() {
			b.refuse(f, e, "a quantity is compared as a number: write a limit, such as <=64Gi")
		}
		return nil
	}
	n, text, ok := b.argument(f, e, name, v)
	if !ok {
		return nil
	}
	demand, cel := v.demand, call(v.cel, nil)
	switch v.takes {
	case isInt:
		demand, cel = fmt.Sprintf(v.demand, n), call(v.cel, jsonNumber(strconv.Itoa(n)))
	case isString:
		demand, cel = fmt.Sprintf(v.demand, text), call(v.cel, text)
	}
	if name == "list.UniqueItems" && t.item().kinds()&isMapping != 0 {
		cel = expression{reason: "mappings that are compared: some have fields with empty values, which count as " +
			"not set"}
	}
	return all{&scalar{
		by: b.origin(f, e), demand: demand, kinds: v.kinds, cel: cel.guarded(v.kinds, t), whole: v.takes == 0,
		holds: func(x any) bool { return kindOf(x)&v.kinds != 0 && v.holds(x, n, text) },
	}}
}

// argument is the one argument of a validator, if it takes one.
func (b *builder) argument(f *file, e *ast.CallExpr, name string, v validator) (n int, text string, ok bool) {
	want := 1
	if v.takes == 0 {
		want = 0
	}
	if len(e.Args) != want {
		b.refuse(f, e, "%s: takes %d arguments", name, want)
		return 0, "", false
	}
	if want == 0 {
		return 0, "", true
	}
	arg, ok := b.operand(f, e.Args[0])
	if !ok {
		return 0, "", false
	}
	var err error
	switch arg := arg.(type) {
	case json.Number:
		n, err = strconv.Atoi(arg.String())
	case string:
		text = arg
	}
	if err != nil || n < 0 || kindOf(arg) != v.takes {
		b.refuse(f, e.Args[0], "%s: its argument must be %s, not %s", name, v.takes, show(arg))
		return 0, "", false
	}
	return n, text, true
}

func validatorNames() (names []string) {
	for name := range validators {
		names = append(names, name)
	}
	slices.Sort(names)
	return append(names, "close")
}

// closed is close({...}).
func (b *builder) closed(f *file, e *ast.CallExpr, t goType) all {
	s, ok := e.Args[0].(*ast.StructLit)
	if !ok || slices.ContainsFunc(s.Elts, func(d ast.Decl) bool { _, embeds := d.(*ast.EmbedDecl); return embeds }) {
		b.refuse(f, e, "close: write the fields in it, as close({...})")
		return nil
	}
	rules := b.mapping(f, s, t)
	for _, r := range rules {
		m, ok := r.(*mapping)
		if !ok {
			continue
		}
		m.closed = true
		for name, field := range t.fields() {
			if field.always() && !m.lists(name) {
				b.refuse(f, e, "close: %s is set in every object: list it, such as %s: {...}", name, name)
			}
			if !field.omitEmpty {
				m.pointers = append(m.pointers, name)
			}
		}
	}
	return rules
}

func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	name, _, err := ast.LabelName(s.Sel)
	if err != nil {
		return ""
	}
	return x.Name + "." + name
}

func unique(v any) bool {
	seen := map[string]bool{}
	for _, item := range v.([]any) {
		text, err := json.Marshal(item) // fields are sorted
		if err != nil || seen[string(text)] {
			return false
		}
		seen[string(text)] = true
	}
	return true
}

// equal compares scalars: numbers by their value.
func equal(a, b any) bool {
	x, isNum := a.(json.Number)
	y, areNum := b.(json.Number)
	if isNum && areNum {
		p, okP := number(x, false)
		q, okQ := number(y, false)
		return okP && okQ && p.Cmp(q) == 0
	}
	switch a.(type) {
	case string, bool:
		return a == b
	}
	return false
}

// family is the kinds of a value and of those that are compared with it.
func family(v any) kinds {
	if k := kindOf(v); k&isNumber == 0 {
		return k
	}
	return isNumber
}

func text(v any) string { return fmt.Sprint(v) }
