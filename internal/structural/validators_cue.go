//go:build !js

package structural

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
)

// conjuncts are the parts of a conjunction, and those of what it refers to.
func conjuncts(v cue.Value) (all []cue.Value) {
	op, args := cue.Dereference(v).Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	for _, arg := range args {
		all = append(all, conjuncts(arg)...)
	}
	return all
}

// kindOf is the kind of what a definition allows. One that no value satisfies by itself, such as a list that must not
// be empty, has that of a part.
func kindOf(v cue.Value) cue.Kind {
	kind := v.IncompleteKind()
	if kind != cue.BottomKind {
		return kind
	}
	for _, part := range conjuncts(v) {
		if k := part.IncompleteKind(); k != cue.TopKind && k != cue.BottomKind {
			return k
		}
	}
	return kind
}

// elemOf is what a definition allows for each item of a list.
func elemOf(v cue.Value) cue.Value {
	if elem := v.LookupPath(cue.MakePath(cue.AnyIndex)); elem.Exists() {
		return elem
	}
	for _, part := range conjuncts(v) {
		if elem := part.LookupPath(cue.MakePath(cue.AnyIndex)); elem.Exists() {
			return elem
		}
	}
	panic(fmt.Errorf("compiling the schema: %v is a list of nothing", v))
}

// calls are the validators of a conjunction, such as list.MinItems(1), by name, with their arguments.
func calls(v cue.Value) map[string][]cue.Value {
	all := map[string][]cue.Value{}
	for _, part := range conjuncts(v) {
		if op, args := part.Expr(); op == cue.CallOp {
			all[fmt.Sprint(args[0])] = args[1:]
		}
	}
	return all
}

// alternatives are the fields of which a definition allows one at most, or exactly one: it has
// matchN(<=1, [{a!: _}, {b!: _}]), or matchN(1, …).
func alternatives(v cue.Value) (fields []string, exact bool) {
	args := calls(v)["matchN"]
	if args == nil {
		return nil, false
	}
	list, err := args[1].List()
	if err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	for list.Next() {
		one, err := list.Value().Fields(cue.Optional(true))
		if err != nil || !one.Next() || one.Selector().ConstraintType() != cue.RequiredConstraint {
			panic(fmt.Errorf("compiling the schema: %v is not a required field: %w", list.Value(), err))
		}
		fields = append(fields, one.Selector().Unquoted())
	}
	return fields, args[0].IsConcrete()
}

// limitsOf are the limits of a list, with the messages of its attributes.
func limitsOf(v cue.Value) *limits {
	var l limits
	for name, args := range calls(v) {
		switch name {
		case "list.MinItems":
			l.Least, l.Few = int(*numberOf(args[0])), messageOf(v, "few")
		case "list.MaxItems":
			l.Most, l.Many = int(*numberOf(args[0])), messageOf(v, "many")
		case "list.UniqueItems", "list.UniqueItems()":
			l.Distinct = true
		default:
			panic(fmt.Errorf("compiling the schema: there is no limit %s of a list", name))
		}
	}
	if l == (limits{}) {
		return nil
	}
	return &l
}

// messageOf is an attribute with a rule and a text: @few(requires,"names no port: write those of the connections"). A
// long text is given in pieces.
func messageOf(v cue.Value, name string) message {
	a := v.Attribute(name)
	if a.NumArgs() < 2 {
		panic(fmt.Errorf("compiling the schema: %v has no @%s(rule,\"text\")", v.Path(), name))
	}
	var texts []string
	for i := range a.NumArgs() {
		text, err := a.String(i)
		if err != nil {
			panic(fmt.Errorf("compiling the schema: @%s: %w", name, err))
		}
		texts = append(texts, text)
	}
	return message{texts[0], strings.Join(texts[1:], "")}
}
