// Package apis holds the custom resources that tegen renders and reads, as Go types with the fields that it uses and no
// others: the systems' own modules would bring their controllers' dependencies with them. Each file cites where its
// fields come from. The same types are printed by generators, walked by the reference check and planned from, and
// strictly decoded by import, which so learns what it cannot keep.
package apis

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Custom is a custom resource with a spec of its own type; status is the controllers' to write.
type Custom[S any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
}

// DeepCopyObject copies by way of JSON, which is all that these types are made for.
func (c *Custom[S]) DeepCopyObject() runtime.Object {
	out := new(Custom[S])
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil { // every field has a JSON form
		panic(fmt.Errorf("copying %s %s: %w", c.Kind, c.Name, err))
	}
	return out
}

// New is an object of a kind.
func New[S any](gvk schema.GroupVersionKind, meta metav1.ObjectMeta, spec S) *Custom[S] {
	c := &Custom[S]{ObjectMeta: meta, Spec: spec}
	c.APIVersion, c.Kind = gvk.ToAPIVersionAndKind()
	return c
}

// Mistake is a value that no object of its kind can have.
type Mistake struct {
	At        yamldoc.Path
	What, Why string
}

// Decode converts an object from a map to its type, without the fields that the type lacks. It returns nil for a kind
// that is not in Kinds, and for an object with a mistake.
func Decode(gvk schema.GroupVersionKind, object map[string]any) (runtime.Object, *Mistake) {
	for _, k := range Kinds {
		if k.GroupVersionKind == gvk {
			return decode(k.make(), object)
		}
	}
	return nil, nil
}

func decode(obj runtime.Object, object map[string]any) (runtime.Object, *Mistake) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, &Mistake{What: "object", Why: err.Error()}
	}
	if at, err := quantity.CheckJSON(reflect.TypeOf(obj), text); err != nil {
		return nil, &Mistake{at, "quantity", err.Error()}
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(text, obj); {
	case errors.As(err, &wrong):
		return nil, &Mistake{
			yamldoc.PathAt(text, wrong.Offset), "value",
			fmt.Sprintf("got %s, want %s", yamldoc.GotWord(wrong.Value), yamldoc.WantWord(wrong.Type)),
		}
	case err != nil: // from an UnmarshalJSON method, such as that of a quantity
		return nil, &Mistake{What: "value", Why: err.Error()}
	}
	return obj, nil
}
