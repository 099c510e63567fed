package crds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/manifest"
)

// ReadDir reads the definitions in the YAML files of a directory, in the order
// of their names. Documents of other kinds, such as a kustomization, are
// passed over; a directory without any definition is an error, since nothing
// would be checked.
func ReadDir(dir string) ([]*Definition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, errors.Unwrap(err))
	}
	var all []*Definition
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(e.Name())) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			continue // a directory; or a pipe, whose reader waits for whoever writes
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, errors.Unwrap(err))
		}
		found, err := Read(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading %s: no CustomResourceDefinition in its YAML files: name "+
			"the directory that holds them", dir)
	}
	return all, nil
}

// Read reads the definitions in a stream of YAML documents, or in the items of
// a List, as "kubectl get crds -o yaml" prints them.
func Read(file string, text []byte) ([]*Definition, error) {
	objects, err := manifest.Read(file, text)
	if err != nil {
		return nil, err
	}
	var all []*Definition
	for _, obj := range objects {
		u, ok := obj.(*unstructured.Unstructured)
		if gvk := obj.GetObjectKind().GroupVersionKind(); !ok || gvk.Group != apiextensions.GroupName ||
			gvk.Kind != "CustomResourceDefinition" {
			continue
		}
		d, err := parse(file, u)
		if err != nil {
			return nil, fmt.Errorf("%s: CustomResourceDefinition %s: %w", file, u.GetName(), err)
		}
		all = append(all, d)
	}
	return all, nil
}

// parse converts a definition to the form that both of its API versions share inside
// an API server, with the defaults of its own: in v1beta1, one schema may stand
// for all versions, and unknown fields are kept by default.
func parse(file string, u *unstructured.Unstructured) (*Definition, error) {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var crd apiextensions.CustomResourceDefinition
	switch version := u.GroupVersionKind().Version; version {
	case "v1":
		var in apiextensionsv1.CustomResourceDefinition
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &in); err != nil {
			return nil, err
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&in)
		err = apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&in, &crd,
			nil)
	case "v1beta1":
		var in apiextensionsv1beta1.CustomResourceDefinition
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &in); err != nil {
			return nil, err
		}
		apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(&in)
		err = apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
			&in, &crd, nil)
	default:
		return nil, fmt.Errorf("apiVersion: %s has the versions v1 and v1beta1, not %s", apiextensions.GroupName,
			version)
	}
	if err != nil {
		return nil, err
	}
	return define(file, &crd)
}
