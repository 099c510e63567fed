// Package apis holds the custom resources that tegen renders and reads, as Go types with the fields that it uses and no
// others: the systems' own modules would bring their controllers' dependencies with them. Each file cites where its
// fields come from. The same types are printed by generators, walked by the reference check and planned from, and
// strictly decoded by import, which so learns what it cannot keep.
package apis

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/quantity"
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

// Empty is an object of a kind without fields, nil for a kind that is not in Kinds.
func Empty(gvk schema.GroupVersionKind) runtime.Object {
	for _, k := range Kinds {
		if k.GroupVersionKind == gvk {
			return k.make()
		}
	}
	return nil
}

// Decode makes a typed object of one read as a map, leaving out what the types do not have; nil for a kind that is not
// in Kinds, or that does not decode: manifest.Read says why.
func Decode(gvk schema.GroupVersionKind, object map[string]any) runtime.Object {
	obj := Empty(gvk)
	if obj == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	if _, err := quantity.CheckJSON(reflect.TypeOf(obj), text); err != nil {
		return nil
	}
	if json.Unmarshal(text, obj) != nil {
		return nil
	}
	return obj
}
