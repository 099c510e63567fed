package crds

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// The defaulting of k8s.io/apiextensions-apiserver is in one package with
// the validation of defaults, which links CEL and k8s.io/apiserver. These two
// functions are all of it that is needed here; tests hold them against it.

// setDefaults fills in the schema's defaults: where a field is missing, and
// where it is null and may not be.
func setDefaults(x any, s *schema.Structural) {
	if s == nil {
		return
	}
	switch x := x.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if _, found := x[name]; !found && property.Default.Object != nil {
				x[name] = runtime.DeepCopyJSONValue(property.Default.Object)
			}
		}
		for name, value := range x {
			of := schemaOf(name, s)
			if mustNotBeNull(value, of) && of.Default.Object != nil {
				x[name] = runtime.DeepCopyJSONValue(of.Default.Object)
			}
			setDefaults(x[name], of)
		}
	case []any:
		for i := range x {
			if mustNotBeNull(x[i], s.Items) {
				x[i] = runtime.DeepCopyJSONValue(s.Items.Default.Object)
			}
			setDefaults(x[i], s.Items)
		}
	}
}

// dropNulls removes fields that are null and may not be. Nobody misses them:
// to an API server they are fields that were not written.
func dropNulls(x any, s *schema.Structural) {
	switch x := x.(type) {
	case map[string]any:
		for name, value := range x {
			of := schemaOf(name, s)
			if mustNotBeNull(value, of) && of.Default.Object == nil {
				delete(x, name)
				continue
			}
			dropNulls(value, of)
		}
	case []any:
		for _, item := range x {
			if s == nil {
				dropNulls(item, nil)
			} else {
				dropNulls(item, s.Items)
			}
		}
	}
}

func mustNotBeNull(x any, s *schema.Structural) bool { return x == nil && s != nil && !s.Nullable }

// schemaOf is the schema of a field, nil where there is none.
func schemaOf(name string, s *schema.Structural) *schema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}
