package crds

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definition is one CustomResourceDefinition of one file.
type Definition struct {
	File string
	Kind apischema.GroupKind

	namespaced bool
	// keepsUnknown: no field is ever pruned, whatever the schemas say.
	keepsUnknown bool
	versions     map[string]*version
	served       []string // names of versions, as the file orders them
}

// version is the part of a definition for objects of one apiVersion.
type version struct {
	schema  *schema.Structural // nil where the version has none
	openAPI *spec.Schema       // the same, for the validator
	// statusApart: status is written through a subresource of its own, and
	// dropped from whatever else writes the object.
	statusApart bool
}

// Schema is the schema of a served version, nil where there is none.
func (d *Definition) Schema(name string) *schema.Structural {
	if v := d.versions[name]; v != nil {
		return v.schema
	}
	return nil
}

// Serves reports whether objects of a version can be created.
func (d *Definition) Serves(name string) bool { return d.versions[name] != nil }

func define(file string, crd *apiextensions.CustomResourceDefinition) (*Definition, error) {
	in := &crd.Spec
	if in.Group == "" || in.Names.Kind == "" || len(in.Versions) == 0 {
		return nil, errors.New("spec: group, names.kind and versions say what is defined, and one of them is missing")
	}
	d := &Definition{
		File:         file,
		Kind:         apischema.GroupKind{Group: in.Group, Kind: in.Names.Kind},
		namespaced:   in.Scope == apiextensions.NamespaceScoped,
		keepsUnknown: in.PreserveUnknownFields != nil && *in.PreserveUnknownFields,
		versions:     map[string]*version{},
	}
	for i, v := range in.Versions {
		if !v.Served {
			continue
		}
		parsed, err := d.version(crd, v.Name)
		if err != nil {
			return nil, fmt.Errorf("spec.versions[%d]: %w", i, err)
		}
		d.versions[v.Name] = parsed
		d.served = append(d.served, v.Name)
	}
	return d, nil
}

func (d *Definition) version(crd *apiextensions.CustomResourceDefinition, name string) (*version, error) {
	validation, err := apiextensions.GetSchemaForVersion(crd, name)
	if err != nil {
		return nil, err
	}
	sub, err := apiextensions.GetSubresourcesForVersion(crd, name)
	if err != nil {
		return nil, err
	}
	v := &version{statusApart: sub != nil && sub.Status != nil}
	if validation == nil || validation.OpenAPIV3Schema == nil {
		if !d.keepsUnknown {
			return nil, errors.New("schema.openAPIV3Schema: is missing; an API server takes no definition without one")
		}
		return v, nil
	}
	if v.schema, err = schema.NewStructural(validation.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	if !d.keepsUnknown { // what prunes has to be structural, so that it is clear what is known
		if errs := schema.ValidateStructural(field.NewPath("schema", "openAPIV3Schema"), v.schema); len(errs) > 0 {
			return nil, errs[0]
		}
	}
	v.openAPI = v.schema.ToKubeOpenAPI()
	serve(v.openAPI)
	return v, nil
}

// notServed is the rule for an object of a version that the definition lacks.
func (d *Definition) notServed(name string) string {
	if len(d.served) == 0 {
		return "this CRD serves no version at all; install one that serves " + name
	}
	return fmt.Sprintf("must be of a version that this CRD serves, %s, not %s; change it, or "+
		"install a CRD that serves %[2]s", strings.Join(d.served, ", "), name)
}
