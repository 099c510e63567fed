// Package quantity bounds the quantities of Kubernetes, such as 500m and 16Gi, before they are parsed. The parser of
// apimachinery computes with numbers of any length: 1e-9999999 takes it ten seconds.
//
// Input: a quantity as text, or a decoded JSON value and the Go type that it is for.
// Output: the quantity, or an error that names the limit.
package quantity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// The limits leave room for every quantity that Kubernetes stores, which is at most 2^63-1 with nine decimal places.
const (
	maxLength = 64
	maxDigits = 3 // of an exponent
)

var largeExponent = lazy.Regexp(fmt.Sprintf(`[eE][+-]?[0-9]{%d,}$`, maxDigits+1))

// Check returns an error if a text is too long to be parsed as a quantity. It does not parse it.
func Check(text string) error {
	switch {
	case len(text) > maxLength:
		return fmt.Errorf("a quantity of %d characters exceeds the limit of %d: write a shorter number, with a suffix "+
			"such as Gi", len(text), maxLength)
	case largeExponent().MatchString(text):
		return fmt.Errorf("the exponent of quantity %s exceeds the limit of %d digits: write a smaller number", text,
			maxDigits)
	}
	return nil
}

// Parse is resource.ParseQuantity in bounded time.
func Parse(text string) (resource.Quantity, error) {
	if err := Check(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

// isSuspect reports whether a JSON text may hold such a quantity, so that all others are not decoded twice.
func isSuspect(text []byte) bool {
	run := 0 // digits and dots before this byte
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9' || c == '.':
			if run++; run >= maxLength {
				return true
			}
			continue
		case run > 0 && (c == 'e' || c == 'E') && startsLargeExponent(text[i+1:]):
			return true
		}
		run = 0
	}
	return false
}

// startsLargeExponent reports whether a text begins with an exponent that is too large.
func startsLargeExponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	digits := len(text) - len(bytes.TrimLeft(text, "0123456789"))
	return digits > maxDigits
}

// CheckJSON returns the path of the first quantity of a JSON text that is too long to be parsed, and the error. The
// text is about to be decoded into a value of the type. A text that is not JSON is left to the decoder.
func CheckJSON(t reflect.Type, text []byte) (yamldoc.Path, error) {
	if !isSuspect(text) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, nil
	}
	return check(t, value, nil)
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// check walks a type and a value together. Types with a decoder of their own, other than quantities, hold none.
func check(t reflect.Type, value any, at yamldoc.Path) (yamldoc.Path, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := value.(type) {
	case string, json.Number:
		if t == quantityType {
			return at, Check(fmt.Sprint(x))
		}
	case []any:
		for i, item := range x {
			if t.Kind() != reflect.Slice {
				break
			}
			if at, err := check(t.Elem(), item, at.Index(i)); err != nil {
				return at, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			field := typeOf(t, key)
			if field == nil {
				continue
			}
			if at, err := check(field, x[key], at.Add(key)); err != nil {
				return at, err
			}
		}
	}
	return nil, nil
}

// typeOf is the type of what a mapping has under a key, nil where it has nothing. Like encoding/json, it ignores case.
func typeOf(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	if t.Kind() != reflect.Struct || t == quantityType {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if below := typeOf(embedded, key); below != nil {
				return below
			}
		} else if f.IsExported() && strings.EqualFold(name, key) || name == "" && strings.EqualFold(f.Name, key) {
			return f.Type
		}
	}
	return nil
}
