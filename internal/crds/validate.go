package crds

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// serve turns a schema into the one that an API server validates with: integer
// or string is a type to it, and formats that it does not know say nothing.
func serve(s *spec.Schema) {
	if both, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); both {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	if !knownFormat(s) {
		s.Format = ""
	}
	for name, property := range s.Properties {
		serve(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		serve(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		serve(s.AdditionalProperties.Schema)
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			serve(&list[i])
		}
	}
	if s.Not != nil {
		serve(s.Not)
	}
}

func knownFormat(s *spec.Schema) bool {
	switch {
	case len(s.Type) == 0 || s.Type.Contains("string"):
		return strfmt.Default.ContainsName(s.Format)
	case s.Type.Contains("integer"):
		return s.Format == "int32" || s.Format == "int64"
	case s.Type.Contains("number"):
		return s.Format == "float" || s.Format == "double"
	}
	return false
}

// mistake is a violation of a schema by one field.
type mistake struct {
	field, why string
	wrongType  bool
}

func validateSchema(s *spec.Schema, obj map[string]any) []mistake {
	if s == nil {
		return nil
	}
	errs := validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(obj).Errors
	all := make([]mistake, len(errs))
	widest := map[string]string{}
	for i, err := range errs {
		m := schemaMistake(err)
		if m.wrongType && len(m.why) > len(widest[m.field]) {
			widest[m.field] = m.why
		}
		all[i] = m
	}
	// A value of the wrong type also fails every alternative and format of its
	// schema: only the first fact is news.
	return slices.DeleteFunc(all, func(m mistake) bool {
		why, ok := widest[m.field]
		return ok && m.why != why
	})
}
