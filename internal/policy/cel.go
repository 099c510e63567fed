package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Validation is a rule as an expression of CEL, which is false or fails for each value that violates the rule.
type Validation struct {
	Expression string
	Path       yamldoc.Path // "[]" for every item, "[*]" for every field
	Message    string
	Rule       string // position of the rule
}

// PodCEL are the rules for pods, for a template that the CEL variable template holds. The error is a finding.List with
// every rule that CEL cannot express.
func (p *Policy) PodCEL(template string) ([]Validation, error) {
	// Kubernetes leaves empty values out of its own objects. In custom resources they stay, and tegen reads the
	// templates of both with the same Go types.
	return inCEL(p.pod, template, translator{dropsEmpty: true})
}

// ObjectCEL are the rules for objects of a kind, which the CEL variable object holds. The error is that of PodCEL.
func (p *Policy) ObjectCEL(kind, group, object string) ([]Validation, error) {
	return inCEL(p.objectRules(kind, group), object, translator{})
}

// ObjectKinds are the kinds that rules for objects name, such as Service and Job.batch.
func (p *Policy) ObjectKinds() []string { return slices.Sorted(maps.Keys(p.objects)) }

func inCEL(rules all, variable string, t translator) ([]Validation, error) {
	leaves := t.all(rules, place{value: variable})
	if err := t.mistakes.Once().Err(); err != nil {
		return nil, err
	}
	var out []Validation
	for _, l := range leaves {
		if len(l.cel) > maxExpression {
			t.mistakes = append(t.mistakes, l.by.mistake("this rule has %d bytes in CEL, and an API server takes %d: "+
				"write a shorter rule", len(l.cel), maxExpression))
		}
		out = append(out, Validation{l.cel, l.path, l.message, l.by.String()})
	}
	return out, t.mistakes.Once().Err()
}

// maxExpression leaves room for an expression twice in the 100,000 characters of an API server (apiserver 1.36,
// pkg/cel/environment): for an object, and for what it was before.
const maxExpression = 48_000

// translator prints rules in CEL.
type translator struct {
	dropsEmpty bool // an empty value counts as one that is not set
	variables  int
	mistakes   finding.List
}

// place is a value in an expression.
type place struct {
	value string // the expression
	path  yamldoc.Path
	// filled are the rules beside an alternative. The regular fields of their mappings are set for the alternative too.
	filled all
}

func (p place) field(name string) place {
	return place{value: selection(p.value, name), path: p.path.Add(name)}
}

// leaf is an expression for one rule.
type leaf struct {
	by      position
	path    yamldoc.Path
	message string
	cel     string
	empty   bool // its value for an empty mapping or list, which takes the place of a regular field that is not set
}

// below puts the condition under which there is a value before the expression for it.
func (l leaf) below(present string, filled bool) leaf {
	if filled && !l.empty {
		l.cel = conjunct(present) + " && " + conjunct(l.cel)
		return l
	}
	l.cel, l.empty = "!"+operand(present)+" || "+l.cel, true
	return l
}

// each makes the expression one for all items that a variable goes through.
func (l leaf) each(list, variable, condition string) leaf {
	if condition != "" {
		l.cel = "!" + operand(condition) + " || " + l.cel
	}
	l.cel, l.empty = fmt.Sprintf("%s.all(%s, %s)", list, variable, l.cel), true
	return l
}

func (t *translator) leaf(by origin, p place, cel, message string, empty bool) leaf {
	if by.message != "" {
		message = by.message
	}
	return leaf{by.position, p.path, message, cel, empty}
}

func (t *translator) refuse(at position, format string, args ...any) {
	t.mistakes = append(t.mistakes, at.mistake("CEL cannot express this: "+format, args...))
}

// all are the leaves of rules that hold together, as all.check checks them.
func (t *translator) all(rules all, p place) (leaves []leaf) {
	mappings, inItems := mappingsOf(rules), rulesOfItems(rules)
	for _, r := range rules {
		switch r := r.(type) {
		case *scalar:
			if r.cel.reason != "" {
				t.refuse(r.by.position, "%s", r.cel.reason)
			}
			leaves = append(leaves, t.leaf(r.by, p, r.cel.of(p.value), "must "+r.demand,
				r.holds([]any{})))
		case *items:
			if !r.typed {
				leaves = append(leaves, t.leaf(r.by, p, "type("+p.value+") == list", "must be a list", true))
			}
		case *mapping:
			if !r.typed {
				leaves = append(leaves, t.leaf(r.by, p, "type("+p.value+") == map", "must be a mapping", true))
			}
		case *either:
			leaves = append(leaves, t.either(r, p, rules))
		}
	}
	if len(mappings) > 0 {
		leaves = append(leaves, t.mappings(mappings, p)...)
	}
	if len(inItems) > 0 {
		v := t.variable()
		for _, l := range t.all(inItems, place{value: v, path: p.path.Add("[]"), filled: rulesOfItems(p.filled)}) {
			leaves = append(leaves, l.each(p.value, v, ""))
		}
	}
	return leaves
}

func (t *translator) variable() string {
	t.variables++
	return "v" + strconv.Itoa(t.variables)
}

// either is one expression: it has a message only as a whole.
func (t *translator) either(e *either, p place, beside all) leaf {
	p.filled = slices.Concat(p.filled, beside)
	message := fmt.Sprintf("must satisfy one of %d alternatives", len(e.rules))
	if demand, ok := demandOf(e); ok {
		message = "must " + demand
	}
	out := t.leaf(e.by, p, "", message, false)
	if list := texts(e); list != nil {
		out.cel = p.value + " in [" + strings.Join(list, ", ") + "]"
		return out
	}
	var alternatives []string
	for _, rules := range e.rules {
		cel, empty := t.conjunction(rules, p)
		alternatives = append(alternatives, cel)
		out.empty = out.empty || empty
	}
	out.cel = strings.Join(alternatives, " || ")
	return out
}

// texts are the constants of alternatives that are all texts, in CEL; nil for other alternatives.
func texts(e *either) (list []string) {
	for _, rules := range e.rules {
		if len(rules) != 1 {
			return nil
		}
		s, ok := rules[0].(*scalar)
		if !ok || s.kinds != isString {
			return nil
		}
		text, ok := s.value.(string)
		if !ok {
			return nil
		}
		list = append(list, strconv.Quote(text))
	}
	return list
}

// conjunction is one expression for all rules.
func (t *translator) conjunction(rules all, p place) (cel string, empty bool) {
	var parts []string
	empty = true
	for _, l := range t.all(rules, p) {
		parts = append(parts, conjunct(l.cel))
		empty = empty && l.empty
	}
	if len(parts) == 0 {
		return "true", true
	}
	return strings.Join(parts, " && "), empty
}

// mappings are the leaves of what checkMappings checks.
func (t *translator) mappings(mappings []*mapping, p place) (leaves []leaf) {
	for _, name := range fieldNames(mappings, nil) {
		leaves = append(leaves, t.field(mappings, name, p)...)
	}
	for _, m := range mappings {
		for _, pattern := range m.patterns {
			if anyRegular(mappings) || len(mappingsOf(p.filled)) > 0 {
				t.refuse(m.by.position, "a pattern beside fields without ? and !, or in an alternative beside a "+
					"mapping")
				continue
			}
			leaves = append(leaves, t.pattern(pattern, p)...)
		}
		if m.closed {
			leaves = append(leaves, t.closed(m, p))
		}
	}
	return leaves
}

// field are the leaves of one field, which several mappings may have.
func (t *translator) field(mappings []*mapping, name string, p place) (leaves []leaf) {
	beside := mappingsOf(p.filled)
	filled := regularIn(beside, name) || regularIn(mappings, name)
	var rules all
	var one field
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name {
				rules = append(rules, f.rules...)
				one = f
			}
		}
	}
	filled = filled || t.dropsEmpty && one.always
	below := p.field(name)
	present := t.present(p.value, name, one.zero)
	if one.older != "" {
		newer, older := present, t.present(p.value, one.older, one.zero)
		below.value = "(" + newer + " ? " + below.value + " : " + selection(p.value, one.older) + ")"
		present = operand(newer) + " || " + operand(older)
	}
	for _, m := range mappings {
		for _, f := range m.fields {
			switch {
			case f.name != name:
			case f.never && filled: // refused at load but in an alternative, which then never holds
				leaves = append(leaves, t.leaf(f.by, below, "false", "is not allowed", false))
			case f.never:
				leaves = append(leaves, t.leaf(f.by, below, "!"+operand(present), "is not allowed", true))
			case f.presence == required && !filled:
				leaves = append(leaves, t.leaf(f.by, below, present, "is required", false))
			}
		}
	}
	below.filled = rulesFor(beside, name)
	for _, l := range t.all(rules, below) {
		leaves = append(leaves, l.below(present, filled))
	}
	return leaves
}

// regularIn reports whether one of the mappings fills in a field.
func regularIn(mappings []*mapping, name string) bool {
	return slices.ContainsFunc(mappings, func(m *mapping) bool {
		return slices.ContainsFunc(m.fields, func(f field) bool { return f.name == name && f.presence == regular })
	})
}

// present is the expression for a field that is set.
func (t *translator) present(value, name, zero string) string {
	has := strconv.Quote(name) + " in " + value
	if isIdentifier(name) {
		has = "has(" + selection(value, name) + ")"
	}
	if !t.dropsEmpty || zero == "" {
		return has
	}
	return has + " && " + selection(value, name) + " != " + zero
}

// pattern are the leaves of the fields whose names match.
func (t *translator) pattern(of pattern, p place) (leaves []leaf) {
	v := t.variable()
	condition, _ := t.conjunction(of.key, place{value: v})
	if len(of.key) == 1 && kindOnly(of.key[0]) { // [string]: every name is one
		condition = ""
	}
	below := place{value: p.value + "[" + v + "]", path: p.path.Add("[*]")}
	for _, l := range t.all(of.rules, below) {
		leaves = append(leaves, l.each(p.value, v, condition))
	}
	return leaves
}

func kindOnly(r rule) bool {
	s, ok := r.(*scalar)
	return ok && s.cel.text == "true"
}

func anyRegular(mappings []*mapping) bool {
	return slices.ContainsFunc(mappings, func(m *mapping) bool {
		return slices.ContainsFunc(m.fields, func(f field) bool { return f.presence == regular })
	})
}

// closed is the leaf of a mapping that has no other fields.
func (t *translator) closed(m *mapping, p place) leaf {
	v := t.variable()
	var names []string
	for _, f := range m.fields {
		names = append(names, strconv.Quote(f.name))
		if f.older != "" {
			names = append(names, strconv.Quote(f.older))
		}
	}
	allowed := []string{v + " in [" + strings.Join(names, ", ") + "]"}
	for _, pattern := range m.patterns {
		key, _ := t.conjunction(pattern.key, place{value: v})
		allowed = append(allowed, key)
	}
	if t.dropsEmpty && len(m.pointers) > 0 {
		var pointers []string
		for _, name := range m.pointers {
			pointers = append(pointers, strconv.Quote(name))
		}
		const isEmpty = `!(%s in [%s]) && %s[%s] in [dyn(""), dyn(0), dyn(false), dyn([]), dyn({})]`
		allowed = append(allowed, fmt.Sprintf(isEmpty, v, strings.Join(pointers, ", "), p.value, v))
	}
	cel := fmt.Sprintf("%s.all(%s, %s)", p.value, v, strings.Join(allowed, " || "))
	for _, filled := range mappingsOf(p.filled) {
		for _, f := range filled.fields {
			if f.presence == regular && !m.lists(f.name) {
				cel = "false"
			}
		}
	}
	return t.leaf(m.by, p, cel, "has a field that is not allowed", cel != "false")
}

// expression is a condition on a value, in CEL.
type expression struct {
	text   string                    // where the value does not matter
	format func(value string) string // elsewhere
	reason string                    // why CEL cannot demand it; "" if it can
}

func (e expression) of(value string) string {
	if e.format == nil {
		return e.text
	}
	return e.format(value)
}

// operator compares the value with a constant.
func operator(op string, with any) expression { return call("%[1]s "+op+" %[2]s", with) }

// call is a format with the value and a constant.
func call(format string, argument any) expression {
	var literal string
	switch v := argument.(type) {
	case json.Number:
		n, ok := number(v, false)
		switch {
		case !ok || n.IsInt() && !n.Num().IsInt64():
			return expression{reason: fmt.Sprintf("the number %s is too large", v)}
		case n.IsInt():
			literal = n.Num().String()
		default:
			literal = v.String()
		}
	case string:
		literal = strconv.Quote(v)
	case bool:
		literal = strconv.FormatBool(v)
	}
	return expression{format: func(value string) string { return fmt.Sprintf(format, value, literal) }}
}

// quantityOperator compares a quantity, which custom resources may hold as a number, too. shown is how its author wrote
// the number.
func quantityOperator(op string, with *big.Rat, shown string) expression {
	same := func(text string) bool {
		got, ok := number(text, true)
		return ok && got.Cmp(with) == 0
	}
	text := shown
	if !same(text) { // CUE has spellings that Kubernetes does not
		text = strings.TrimSuffix(strings.TrimRight(with.FloatString(9), "0"), ".")
	}
	if !same(text) || !new(big.Int).Quo(with.Num(), with.Denom()).IsInt64() {
		return expression{reason: "a quantity has at most 9 decimals, and 64 bits"}
	}
	return expression{format: func(value string) string {
		return fmt.Sprintf(`isQuantity(string(%[1]s)) && quantity(string(%[1]s)).compareTo(quantity(%[2]q)) %[3]s 0`,
			value, text, op)
	}}
}

// guarded demands a kind first, where values of the type can have another.
func (e expression) guarded(k kinds, t goType) expression {
	if t.kinds()&^k == 0 || e.reason != "" {
		return e
	}
	types := map[kinds][]string{
		isString: {"string"}, isInt: {"int"}, isNumber: {"int", "double"}, isBool: {"bool"}, isList: {"list"},
		isMapping: {"map"},
	}[k]
	if types == nil {
		return expression{reason: "values of several types"}
	}
	return expression{format: func(value string) string {
		var is []string
		for _, name := range types {
			is = append(is, "type("+value+") == "+name)
		}
		if rest := e.of(value); rest != "true" {
			return operand(strings.Join(is, " || ")) + " && " + rest
		}
		return strings.Join(is, " || ")
	}}
}

// conjunct is an expression as an operand of &&, which binds more tightly than ||.
func conjunct(cel string) string {
	if strings.Contains(cel, " || ") {
		return operand(cel)
	}
	return cel
}

// operand is an expression in parentheses, unless it needs none.
func operand(cel string) string {
	if atom().MatchString(cel) {
		return cel
	}
	return "(" + cel + ")"
}

// atom matches a selection or a call without another one in it.
var atom = lazy.Regexp(`^!?[\w.]+(\([\w.\[\]"]*\))?$`)

// selection is a field of a value.
func selection(value, name string) string {
	if isIdentifier(name) {
		return value + "." + name
	}
	return value + "[" + strconv.Quote(name) + "]"
}

// isIdentifier reports whether CEL can select a field by its bare name.
func isIdentifier(name string) bool {
	return identifier().MatchString(name) && !slices.Contains(reserved, name)
}

var identifier = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the words of CEL's grammar that are no identifiers.
var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
	"namespace", "null", "package", "return", "true", "var", "void", "while",
}
