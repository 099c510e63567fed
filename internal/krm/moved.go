package krm

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// moved refuses items of an installation that kustomize has moved before the function runs.
func moved(items []*yaml.Node) error {
	var errs []error
	for _, n := range items {
		if at := installedAs(n); at != "" && at != namespace(n)+"/"+name(n) {
			errs = append(errs, fmt.Errorf("%s %s/%s: metadata: %s: %s", kind(n), namespace(n), name(n), at,
				refs.Moved))
		}
	}
	return errors.Join(errs...)
}

func installedAs(n *yaml.Node) string {
	return textOf(yamldoc.Field(annotations(n), names.InstalledAs))
}

// explained puts a sentence in the place of kustomize's error where a namespace or a prefix gives the objects of two
// installations one name: that error quotes all that the kustomization holds.
func (k *kustomization) explained(first types.Kustomization, files map[string][]byte, err error) error {
	if first.Namespace+first.NamePrefix+first.NameSuffix == "" {
		return err
	}
	items, failed := k.kustomize(types.Kustomization{TypeMeta: first.TypeMeta, Resources: first.Resources}, files)
	if failed != nil {
		return err
	}
	var found []string
	for _, n := range items {
		if at := installedAs(n); at != "" {
			found = append(found, kind(n)+" "+at)
		}
	}
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("building %s: its namespace, namePrefix or nameSuffix is for %s too: %s",
		relative(k.dir), strings.Join(found, " and "), refs.Moved)
}
