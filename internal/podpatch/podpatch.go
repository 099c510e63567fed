// Package podpatch is the escape hatch of a job: fields of the pod template that the schema does not name, as a partial
// PodTemplateSpec in JSON. Validate says what in it no pod template has, with paths; Apply merges what Validate
// accepted by Kubernetes' strategic rules (containers by name, volumes by name) and therefore cannot fail.
package podpatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// Mistake is one field that cannot be merged.
type Mistake struct {
	Path string // within the template: spec.containers[0].imagePolicy; empty where it is unknown
	Msg  string
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// Validate returns every unknown field, or the first value of a wrong type.
func Validate(patch []byte) []Mistake {
	strict, err := kjson.UnmarshalStrict(patch, &corev1.PodTemplateSpec{})
	if err != nil {
		return []Mistake{typeMistake(err)}
	}
	var out []Mistake
	for _, e := range strict {
		if m := unknownField.FindStringSubmatch(e.Error()); m != nil {
			out = append(out, Mistake{m[1], "no pod template has this field"})
		} else {
			out = append(out, Mistake{"", e.Error()})
		}
	}
	if len(out) > 0 {
		return out
	}
	if _, err := merge(&corev1.PodTemplateSpec{}, patch); err != nil {
		return []Mistake{{"", err.Error()}}
	}
	return nil
}

func typeMistake(err error) Mistake {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return Mistake{t.Field, fmt.Sprintf("must be %s, not a %s", kindWord(t.Type.Kind()), t.Value)}
	}
	return Mistake{"", err.Error()}
}

func kindWord(k reflect.Kind) string {
	switch k {
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	}
	return "a whole number"
}

// Apply returns the template with the patch merged into it.
func Apply(template corev1.PodTemplateSpec, patch []byte) corev1.PodTemplateSpec {
	if len(patch) == 0 {
		return template
	}
	merged, err := merge(&template, patch)
	if err != nil { // Validate merged this patch already
		panic(fmt.Errorf("merging podTemplate: %w", err))
	}
	return *merged
}

func merge(template *corev1.PodTemplateSpec, patch []byte) (*corev1.PodTemplateSpec, error) {
	original, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, err
	}
	out := &corev1.PodTemplateSpec{}
	return out, json.Unmarshal(merged, out)
}
