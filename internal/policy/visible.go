package policy

import (
	"reflect"
	"strings"
)

// visible is what rules can see of a Go value, for encoding/json: mappings for structs whose fields rules name, with
// these fields alone. Most of a pod is what no rule is about.
func visible(v reflect.Value, rules all) any {
	mappings := mappingsOf(rules)
	switch {
	case len(rules) == 0: // whether it is set matters
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return visible(v.Elem(), rules)
	case encodesItself(v.Type()):
	case v.Kind() == reflect.Slice && !v.IsNil() && v.Type().Elem().Kind() == reflect.Struct && onlyCounts(rules):
		below := rulesOfItems(rules)
		items := make([]any, v.Len())
		for i := range items {
			items[i] = visible(v.Index(i), below)
		}
		return items
	case v.Kind() == reflect.Struct && len(mappings) == len(rules) && !seesAll(mappings):
		fields := map[string]any{}
		if addVisible(fields, v, mappings) {
			return fields
		}
	}
	if v.CanAddr() { // a method for encoding can have a pointer as its receiver
		return v.Addr().Interface()
	}
	return v.Interface()
}

// addVisible adds the fields of a struct that mappings name. It reports false for a struct with other forms of fields
// than Kubernetes' types have.
func addVisible(to map[string]any, v reflect.Value, mappings []*mapping) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported():
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || !addVisible(to, v.Field(i), mappings) {
				return false
			}
		case !isNamed(mappings, name) && name != "":
		case name == "", strings.Contains(options, "string"), strings.Contains(options, "omitzero"):
			return false // encoding/json decides by the type's own methods
		case strings.Contains(options, "omitempty") && isEmpty(v.Field(i)):
		default:
			to[name] = visible(v.Field(i), rulesFor(mappings, name))
		}
	}
	return true
}

// isEmpty is as encoding/json's for omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// onlyCounts reports whether rules of a list, besides those of its items, see no more than the number of items.
func onlyCounts(rules all) bool {
	for _, r := range rules {
		switch r := r.(type) {
		case *items:
		case *scalar:
			if r.whole {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// seesAll reports whether mappings have rules for fields that they do not name.
func seesAll(mappings []*mapping) bool {
	for _, m := range mappings {
		if m.closed || len(m.patterns) > 0 {
			return true
		}
	}
	return false
}

func isNamed(mappings []*mapping, name string) bool {
	for _, m := range mappings {
		for _, f := range m.fields {
			if f.name == name || f.older == name {
				return true
			}
		}
	}
	return false
}
