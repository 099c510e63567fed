package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// selector computes the value of a CEL expression, or of a part of one, for a device: a bool, an int64, a string, a
// version, a quantity, or an error, which is a value in CEL too.
type selector func(*offer) any

// selected finds the devices that satisfy all selectors.
func selected(all []resourcev1.DeviceSelector, offers []*offer) ([]*offer, error) {
	for _, s := range all {
		parsed, err := parseSelector(s.CEL.Expression)
		if err != nil {
			return nil, fmt.Errorf("the selector %s: %w", s.CEL.Expression, err)
		}
		var left []*offer
		for _, o := range offers {
			switch value := parsed(o).(type) {
			case bool:
				if value {
					left = append(left, o)
				}
			case error:
				return nil, fmt.Errorf("the selector %s, device %s: %w", s.CEL.Expression, o.id.device, value)
			default:
				return nil, fmt.Errorf("the selector %s, device %s: %w", s.CEL.Expression, o.id.device, errMismatch)
			}
		}
		offers = left
	}
	return offers, nil
}

// parseSelector reads the part of CEL in which drivers and their users select devices, and refuses the rest. It stands
// in for cel-go, which would make each start of the command slower and its binary larger by 6 MB. Apart from
// quotation marks, CUE writes this part the same, so CUE's parser reads it.
func parseSelector(text string) (selector, error) {
	converted, err := requote(text)
	if err != nil {
		return nil, err
	}
	expr, err := parser.ParseExpr("", converted)
	if err != nil {
		return nil, errors.New("its syntax is not supported")
	}
	return compile(expr)
}

// requote turns CEL's strings, which stand between quotation marks of either kind, into CUE's.
func requote(text string) (string, error) {
	var out strings.Builder
	for text != "" {
		quote := text[0]
		if strings.HasPrefix(text, "//") || strings.HasPrefix(text, `"""`) || strings.HasPrefix(text, "'''") {
			return "", errors.New("comments and strings of several lines are not supported")
		}
		if quote != '"' && quote != '\'' {
			if quote == '\n' { // ends an expression in CUE
				quote = ' '
			}
			out.WriteByte(quote)
			text = text[1:]
			continue
		}
		var value strings.Builder
		for text = text[1:]; !strings.HasPrefix(text, string(quote)); {
			char, _, tail, err := strconv.UnquoteChar(text, quote)
			if err != nil {
				return "", errors.New("a string in it is not supported")
			}
			value.WriteRune(char)
			text = tail
		}
		text = text[1:]
		out.WriteString(strconv.Quote(value.String()))
	}
	return out.String(), nil
}

func compile(expr ast.Expr) (selector, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return compile(e.X)
	case *ast.BasicLit:
		return literal(e)
	case *ast.SelectorExpr, *ast.IndexExpr:
		return field(e)
	case *ast.CallExpr:
		return call(e)
	case *ast.UnaryExpr:
		return apply(e.Op.String()+"_", e.X)
	case *ast.BinaryExpr:
		return apply("_"+e.Op.String()+"_", e.X, e.Y)
	}
	return nil, errors.New("its syntax is not supported")
}

// call is has(FIELD), FUNCTION(TEXT), VALUE.METHOD() or VALUE.METHOD(OTHER).
func call(e *ast.CallExpr) (selector, error) {
	parameters := "(" + strings.TrimSuffix(strings.Repeat("_, ", len(e.Args)), ", ") + ")"
	switch f := e.Fun.(type) {
	case *ast.Ident:
		if f.Name == "has" && len(e.Args) == 1 {
			return has(e.Args[0])
		}
		return apply(f.Name+parameters, e.Args...)
	case *ast.SelectorExpr:
		name, _, _ := ast.LabelName(f.Sel)
		return apply("_."+name+parameters, append([]ast.Expr{f.X}, e.Args...)...)
	}
	return nil, errors.New("its syntax is not supported")
}

// has reports whether a device has a field.
func has(expr ast.Expr) (selector, error) {
	if _, ok := expr.(*ast.SelectorExpr); !ok {
		return nil, errors.New("the operand of has must be a field, as in has(device.attributes['d'].name)")
	}
	value, err := field(expr)
	return func(o *offer) any {
		_, absent := value(o).(error)
		return !absent
	}, err
}

// apply computes the operands of an operation, and then its value.
func apply(name string, operands ...ast.Expr) (selector, error) {
	f := operations[name]
	if f == nil {
		return nil, fmt.Errorf("%s is not supported", name)
	}
	terms := make([]selector, len(operands))
	for i, operand := range operands {
		var err error
		if terms[i], err = compile(operand); err != nil {
			return nil, err
		}
	}
	takesErrors := name == "_&&_" || name == "_||_"
	return func(o *offer) any {
		var values [2]any
		for i, term := range terms {
			values[i] = term(o)
			if err, failed := values[i].(error); failed && !takesErrors {
				return err
			}
		}
		return f(values[0], values[1])
	}, nil
}

func literal(e *ast.BasicLit) (selector, error) {
	var value any
	var err error
	switch e.Kind {
	case token.TRUE, token.FALSE:
		value = e.Kind == token.TRUE
	case token.INT:
		value, err = strconv.ParseInt(e.Value, 10, 64)
	case token.STRING:
		value, err = strconv.Unquote(e.Value)
	default:
		err = errors.New("null and numbers with a point are not supported")
	}
	return func(*offer) any { return value }, err
}

// field reads device.driver, device.attributes["DOMAIN"].NAME, or device.capacity["DOMAIN"].NAME.
func field(e ast.Expr) (selector, error) {
	keys := path(e)
	if slices.Equal(keys, []string{"device", "driver"}) {
		return func(o *offer) any { return o.id.driver }, nil
	}
	if len(keys) != 4 || keys[0] != "device" || keys[1] != "attributes" && keys[1] != "capacity" {
		return nil, errors.New("only driver, attributes and capacity of a device are supported")
	}
	return func(o *offer) any {
		if keys[1] == "attributes" {
			if value, ok := attribute(o, keys[2], keys[3]); ok {
				return value
			}
		} else if c, ok := qualified(o.Capacity, o.id.driver, keys[2], keys[3]); ok {
			return c.Value
		}
		return errors.New("no such key: " + strings.Join(keys[1:], " "))
	}, nil
}

// path splits an expression into its identifiers and constant keys.
func path(expr ast.Expr) []string {
	switch e := expr.(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.SelectorExpr:
		if name, _, err := ast.LabelName(e.Sel); err == nil {
			return append(path(e.X), name)
		}
	case *ast.IndexExpr:
		if lit, ok := e.Index.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if key, err := strconv.Unquote(lit.Value); err == nil {
				return append(path(e.X), key)
			}
		}
	}
	return nil
}

// qualified finds what a device lists by a name: the domain is left out where it is that of the driver.
func qualified[V any](all map[resourcev1.QualifiedName]V, driver, domain, name string) (v V, ok bool) {
	if v, ok = all[resourcev1.QualifiedName(domain+"/"+name)]; !ok && domain == driver {
		v, ok = all[resourcev1.QualifiedName(name)]
	}
	return v, ok
}

// version is the text of a semantic version.
type version string

// attribute is a bool, an int64, a string, or a version.
func attribute(o *offer, domain, name string) (any, bool) {
	a, ok := qualified(o.Attributes, o.id.driver, domain, name)
	switch {
	case !ok:
	case a.BoolValue != nil:
		return *a.BoolValue, true
	case a.IntValue != nil:
		return *a.IntValue, true
	case a.StringValue != nil:
		return *a.StringValue, true
	case a.VersionValue != nil:
		return version(*a.VersionValue), true
	}
	return nil, false
}

// operation computes a value from one operand or from two.
type operation func(x, y any) any

// operations are the supported operators, functions and methods, with a _ for each operand.
var operations = map[string]operation{
	"_&&_": logical(false),
	"_||_": logical(true),
	"_==_": equality(true),
	"_!=_": equality(false),
	"_<_":  comparison(false, func(order int) any { return order < 0 }),
	"_<=_": comparison(false, func(order int) any { return order <= 0 }),
	"_>_":  comparison(false, func(order int) any { return order > 0 }),
	"_>=_": comparison(false, func(order int) any { return order >= 0 }),
	"!_":   unary(func(x bool) any { return !x }),
	"-_": unary(func(x int64) any {
		if x == math.MinInt64 {
			return errors.New("integer overflow")
		}
		return -x
	}),

	"quantity(_)": unary(func(x string) any { return result(resource.ParseQuantity(x)) }),
	"semver(_)": unary(func(x string) any {
		_, err := semver.Parse(x)
		return result(version(x), err)
	}),
	"_.compareTo(_)":     comparison(true, func(order int) any { return int64(order) }),
	"_.isLessThan(_)":    comparison(true, func(order int) any { return order < 0 }),
	"_.isGreaterThan(_)": comparison(true, func(order int) any { return order > 0 }),

	"_.lowerAscii()":  unary(func(x string) any { return strings.Map(lowerASCII, x) }),
	"_.startsWith(_)": onStrings(strings.HasPrefix),
	"_.endsWith(_)":   onStrings(strings.HasSuffix),
	"_.contains(_)":   onStrings(strings.Contains),
	"_.matches(_)":    onStrings(func(x, y string) any { return result(regexp.MatchString(y, x)) }),
}

var errMismatch = errors.New("an operator or a function does not fit the type of its operand")

// result is a value, or the error in its place.
func result[V any](value V, err error) any {
	if err != nil {
		return err
	}
	return value
}

func unary[X any](f func(X) any) operation {
	return func(x, _ any) any {
		if x, ok := x.(X); ok {
			return f(x)
		}
		return errMismatch
	}
}

// logical is && or ||. As in CEL, an error counts only if the other operand does not decide.
func logical(decisive bool) operation {
	return func(x, y any) any {
		switch {
		case x == decisive || y == decisive:
			return decisive
		case x == !decisive && y == !decisive:
			return !decisive
		}
		for _, value := range []any{x, y} {
			if err, ok := value.(error); ok {
				return err
			}
		}
		return errMismatch
	}
}

// equality is == or !=. Values of different types differ.
func equality(want bool) operation {
	return func(x, y any) any {
		order, err := compare(x, y)
		if errors.Is(err, errMismatch) {
			return !want
		}
		return result((order == 0) == want, err)
	}
}

// comparison orders versions and quantities, which have methods for it, or the values that have operators for it.
func comparison(method bool, f func(order int) any) operation {
	return func(x, y any) any {
		_, isVersion := x.(version)
		_, isQuantity := x.(resource.Quantity)
		if method != (isVersion || isQuantity) {
			return errMismatch
		}
		order, err := compare(x, y)
		return result(f(order), err)
	}
}

// compare orders two values of the same type.
func compare(a, b any) (int, error) {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return 0, errMismatch
	}
	switch a := a.(type) {
	case bool:
		return strings.Compare(strconv.FormatBool(a), strconv.FormatBool(b.(bool))), nil
	case int64:
		return cmp.Compare(a, b.(int64)), nil
	case string:
		return strings.Compare(a, b.(string)), nil
	case version:
		x, errA := semver.Parse(string(a))
		y, errB := semver.Parse(string(b.(version)))
		return x.Compare(y), cmp.Or(errA, errB)
	case resource.Quantity:
		return a.Cmp(b.(resource.Quantity)), nil
	}
	return 0, errMismatch
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

func onStrings[V any](f func(x, y string) V) operation {
	return func(x, y any) any {
		a, okX := x.(string)
		b, okY := y.(string)
		if !okX || !okY {
			return errMismatch
		}
		return f(a, b)
	}
}
