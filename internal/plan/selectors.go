package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// selector computes the value of a CEL expression, or of a part of one, for a device.
type selector func(*offer) (any, error)

// selected finds the devices that satisfy all selectors.
func selected(all []resourcev1.DeviceSelector, offers []*offer) ([]*offer, error) {
	for _, s := range all {
		parsed, err := parseSelector(s.CEL.Expression)
		if err != nil {
			return nil, fmt.Errorf("the selector %s: %w", s.CEL.Expression, err)
		}
		var left []*offer
		for _, o := range offers {
			value, err := parsed(o)
			ok, isBool := value.(bool)
			if err == nil && !isBool {
				err = errMismatch
			}
			if err != nil {
				return nil, fmt.Errorf("the selector %s, device %s: %w", s.CEL.Expression, o.id.device, err)
			}
			if ok {
				left = append(left, o)
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
		x, err := compile(e.X)
		return negation(x, e.Op), err
	case *ast.BinaryExpr:
		x, err := compile(e.X)
		if err != nil {
			return nil, err
		}
		y, err := compile(e.Y)
		if err != nil {
			return nil, err
		}
		switch e.Op {
		case token.LAND, token.LOR:
			return logical(x, y, e.Op == token.LOR), nil
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return comparison(x, y, e.Op), nil
		}
	}
	return nil, errors.New("its syntax is not supported")
}

var errMismatch = errors.New("an operator or a function does not fit the type of its operand")

func negation(x selector, op token.Token) selector {
	return func(o *offer) (any, error) {
		switch v, err := x(o); v := v.(type) {
		case bool:
			if op == token.NOT {
				return !v, nil
			}
		case int64:
			if op == token.SUB {
				return -v, nil
			}
		case nil:
			return nil, err
		}
		return nil, errMismatch
	}
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
	return func(*offer) (any, error) { return value, nil }, err
}

// field reads device.driver, device.attributes["DOMAIN"].NAME, or device.capacity["DOMAIN"].NAME.
func field(e ast.Expr) (selector, error) {
	keys := path(e)
	switch {
	case len(keys) == 2 && keys[0] == "device" && keys[1] == "driver":
		return func(o *offer) (any, error) { return o.id.driver, nil }, nil
	case len(keys) == 4 && keys[0] == "device" && keys[1] == "attributes":
		return func(o *offer) (any, error) {
			if value, ok := attribute(o, keys[2], keys[3]); ok {
				return value, nil
			}
			return nil, missing(keys)
		}, nil
	case len(keys) == 4 && keys[0] == "device" && keys[1] == "capacity":
		return func(o *offer) (any, error) {
			if c, ok := qualified(o.Capacity, o.id.driver, keys[2], keys[3]); ok {
				return c.Value, nil
			}
			return nil, missing(keys)
		}, nil
	}
	return nil, errors.New("only driver, attributes and capacity of a device are supported")
}

// absent is the error of a device without an attribute or a capacity.
type absent string

func missing(keys []string) error { return absent(strings.Join(keys[1:], " ")) }
func (a absent) Error() string    { return "no such key: " + string(a) }

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

// logical is && or ||. As in CEL, an error counts only if the other operand does not decide.
func logical(x, y selector, decisive bool) selector {
	return func(o *offer) (any, error) {
		a, errA := x(o)
		b, errB := y(o)
		if errA == nil && a == decisive || errB == nil && b == decisive {
			return decisive, nil
		}
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		_, okA := a.(bool)
		_, okB := b.(bool)
		if !okA || !okB {
			return nil, errMismatch
		}
		return !decisive, nil
	}
}

func comparison(x, y selector, op token.Token) selector {
	return func(o *offer) (any, error) {
		a, err := x(o)
		if err != nil {
			return nil, err
		}
		b, err := y(o)
		if err != nil {
			return nil, err
		}
		order, err := compare(a, b)
		switch {
		case op == token.EQL:
			return err == nil && order == 0, nil // values of different types differ
		case op == token.NEQ:
			return err != nil || order != 0, nil
		case err != nil:
			return nil, err
		}
		return map[token.Token]bool{
			token.LSS: order < 0, token.LEQ: order <= 0, token.GTR: order > 0, token.GEQ: order >= 0,
		}[op], nil
	}
}

// compare orders two values of the same type.
func compare(a, b any) (int, error) {
	switch a := a.(type) {
	case bool:
		if b, ok := b.(bool); ok {
			return strings.Compare(strconv.FormatBool(a), strconv.FormatBool(b)), nil
		}
	case int64:
		if b, ok := b.(int64); ok {
			return int(max(-1, min(1, a-b))), nil
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), nil
		}
	case version:
		if b, ok := b.(version); ok {
			x, errA := semver.Parse(string(a))
			y, errB := semver.Parse(string(b))
			return x.Compare(y), errors.Join(errA, errB)
		}
	case resource.Quantity:
		if b, ok := b.(resource.Quantity); ok {
			return a.Cmp(b), nil
		}
	}
	return 0, errMismatch
}

// functions by their name. The value on which a method is called is its first argument.
var functions = map[string]func(x, y any) (any, error){
	"quantity":      func(x, _ any) (any, error) { return onString(x, resource.ParseQuantity) },
	"semver":        func(x, _ any) (any, error) { return onString(x, parseVersion) },
	"lowerAscii":    func(x, _ any) (any, error) { return onString(x, lowerASCII) },
	"startsWith":    func(x, y any) (any, error) { return onStrings(x, y, strings.HasPrefix) },
	"endsWith":      func(x, y any) (any, error) { return onStrings(x, y, strings.HasSuffix) },
	"contains":      func(x, y any) (any, error) { return onStrings(x, y, strings.Contains) },
	"matches":       matches,
	"compareTo":     func(x, y any) (any, error) { return onAmounts(x, y, func(n int) any { return int64(n) }) },
	"isLessThan":    func(x, y any) (any, error) { return onAmounts(x, y, func(n int) any { return n < 0 }) },
	"isGreaterThan": func(x, y any) (any, error) { return onAmounts(x, y, func(n int) any { return n > 0 }) },
}

func onString[V any](x any, f func(string) (V, error)) (any, error) {
	if text, ok := x.(string); ok {
		return f(text)
	}
	return nil, errMismatch
}

func parseVersion(text string) (version, error) {
	_, err := semver.Parse(text)
	return version(text), err
}

func lowerASCII(text string) (string, error) {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text), nil
}

func onStrings(x, y any, f func(x, y string) bool) (any, error) {
	a, okA := x.(string)
	b, okB := y.(string)
	if !okA || !okB {
		return nil, errMismatch
	}
	return f(a, b), nil
}

func matches(x, y any) (any, error) {
	text, okX := x.(string)
	pattern, okY := y.(string)
	if !okX || !okY {
		return nil, errMismatch
	}
	return regexp.MatchString(pattern, text)
}

func onAmounts(x, y any, f func(int) any) (any, error) {
	switch x.(type) {
	case version, resource.Quantity:
		order, err := compare(x, y)
		return f(order), err
	}
	return nil, errMismatch
}

// call is has(FIELD), FUNCTION(TEXT), VALUE.METHOD() or VALUE.METHOD(OTHER).
func call(e *ast.CallExpr) (selector, error) {
	args := e.Args
	var name string
	switch f := e.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name, _, _ = ast.LabelName(f.Sel)
		args = append([]ast.Expr{f.X}, args...)
	}
	terms := []selector{nil, func(*offer) (any, error) { return nil, nil }}
	if len(args) == 0 || len(args) > len(terms) {
		return nil, fmt.Errorf("the function %s is not supported", name)
	}
	for i, arg := range args {
		term, err := compile(arg)
		if err != nil {
			return nil, err
		}
		terms[i] = term
	}
	if name == "has" && len(args) == 1 {
		return has(terms[0]), nil
	}
	f := functions[name]
	if f == nil {
		return nil, fmt.Errorf("the function %s is not supported", name)
	}
	return func(o *offer) (any, error) {
		x, err := terms[0](o)
		if err != nil {
			return nil, err
		}
		y, err := terms[1](o)
		if err != nil {
			return nil, err
		}
		return f(x, y)
	}, nil
}

// has reports whether a device has a field.
func has(field selector) selector {
	return func(o *offer) (any, error) {
		_, err := field(o)
		var a absent
		if errors.As(err, &a) {
			return false, nil
		}
		return err == nil, err
	}
}
