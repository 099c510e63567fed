package crds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapi "k8s.io/kube-openapi/pkg/validation/errors"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// The validators of Kubernetes word the same thing in several ways, and with
// the field in the middle. Here their errors become a field and a rule.

const required = "is required; add it"

// schemaMistake takes an error of the schema's validator apart.
func schemaMistake(err error) mistake {
	var v *openapi.Validation
	if !errors.As(err, &v) {
		return combined(err.Error())
	}
	m := mistake{field: strings.TrimPrefix(v.Name, ".")}
	switch v.Code() {
	case openapi.RequiredFailCode:
		m.why = required
	case openapi.InvalidTypeCode:
		m.wrongType = true
		m.why = typeRule(v.Error())
	case openapi.EnumFailCode:
		m.why = "must be one of " + texts(v.Values) + ", not " + text(v.Value)
	case openapi.PatternFailCode, openapi.MaxFailCode, openapi.MinFailCode, openapi.MultipleOfFailCode:
		m.why = must(v) + ", not " + text(v.Value)
	default:
		m.why = must(v)
	}
	return m
}

var (
	ofAlternatives = lazy.Regexp(`^"(.*?)" (must (?:not )?validate .*?)[. ]*$`)
	ofFormat       = lazy.Regexp(`^Checked value (must be of type .*) in (.*)$`)
	ofType         = lazy.Regexp(` must be of type ([^:]+)(?:: "(.*)")?$`)
)

// combined takes the errors apart that have their field in the text alone.
func combined(msg string) mistake {
	if m := ofAlternatives().FindStringSubmatch(msg); m != nil {
		return mistake{field: m[1], why: m[2]}
	}
	if m := ofFormat().FindStringSubmatch(msg); m != nil {
		return mistake{field: m[2], why: m[1]}
	}
	return mistake{why: msg}
}

func typeRule(msg string) string {
	m := ofType().FindStringSubmatch(msg)
	if m == nil {
		return msg
	}
	want, got := strings.ReplaceAll(m[1], ",", " or "), m[2]
	why := "must be of type " + want + ", not " + got
	if want == "string" && got != "object" && got != "array" && got != "null" {
		why += "; put it in quotes"
	}
	return why
}

// must turns "spec.min in body should be greater than 0" into a rule.
func must(v *openapi.Validation) string {
	why := strings.TrimPrefix(v.Error(), v.Name+" in body ")
	return strings.Replace(why, "should ", "must ", 1)
}

// fieldMistake takes an error of the validators of metadata and lists apart.
func fieldMistake(err *field.Error) mistake {
	m := mistake{field: keys().ReplaceAllString(err.Field, ".$1"), why: err.ErrorBody()}
	if m.field == "<nil>" { // a path of no steps
		m.field = ""
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		m.why = required
		if err.Detail != "" {
			m.why = err.Detail
		}
	case field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid:
		m.why = err.Detail
		switch err.BadValue.(type) {
		case map[string]any, []any, field.OmitValueType: // the whole of what a rule looked at
		default:
			m.why += ", not " + text(err.BadValue)
		}
	case field.ErrorTypeDuplicate:
		m.why = text(err.BadValue) + " is in the list already; change or drop one of the two"
	}
	return m
}

// keys of maps, which these validators put into brackets like an index.
var keys = lazy.Regexp(`\[([^\]]*[^\]0-9][^\]]*)\]`)

// decodeMistake takes an error of the decoder of metadata apart.
func decodeMistake(err error) mistake {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return mistake{field: "metadata", why: err.Error()}
	}
	m := mistake{field: "metadata", why: "must be of type " + wrong.Type.String() + ", not " + wrong.Value}
	if wrong.Field != "" {
		m.field += "." + wrong.Field
	}
	if wrong.Type.String() == "string" {
		m.why += "; put it in quotes"
	}
	return m
}

// text is a value as one could write it in YAML.
func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

func texts(values []any) string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = text(value)
	}
	return strings.Join(out, ", ")
}
