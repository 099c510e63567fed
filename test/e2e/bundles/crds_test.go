package bundles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/upstream"
)

// defineTimeout is for all definitions together, of which each takes a second or two of the server's.
const defineTimeout = 2 * time.Minute

// definitions are CustomResourceDefinitions by the kind that they define.
type definitions map[schema.GroupKind]*unstructured.Unstructured

// definitionsFor reads the definitions of the custom resources in the bundles:
// tegen's own, and other projects'. The error is upstream.ErrAbsent, beside
// those that there are, where some are not on this machine.
func definitionsFor(all []*bundle) (definitions, error) {
	wanted := map[schema.GroupKind]bool{}
	for _, b := range all {
		for _, o := range b.objects {
			wanted[o.GroupVersionKind().GroupKind()] = true
		}
	}
	found := definitions{}
	own, err := filepath.Glob(filepath.Join(ownCRDs, "*.yaml"))
	if err != nil || len(own) == 0 {
		return nil, fmt.Errorf("reading CRDs: no YAML files in %s (%w)", ownCRDs, err)
	}
	others, absent := upstream.Files(root)
	if err := found.read(append(own, others...), wanted); err != nil {
		return nil, err
	}
	return found, absent
}

// read adds the wanted definitions of files. Those of an API version that no
// server has any more (v1beta1) are left out, as are those set aside.
func (d definitions) read(files []string, wanted map[schema.GroupKind]bool) error {
	for _, file := range files {
		if _, aside := upstream.SetAside[filepath.Base(file)]; aside {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objects, err := manifest.Read(file, text)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			crd, ok := obj.(*unstructured.Unstructured)
			if !ok || crd.GetAPIVersion() != "apiextensions.k8s.io/v1" || crd.GetKind() != "CustomResourceDefinition" {
				continue
			}
			group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
			gk := schema.GroupKind{Group: group, Kind: kind}
			if d[gk] != nil {
				return fmt.Errorf("reading CRDs: %s defines %s, and so does another file; set one aside", file, gk)
			}
			if wanted[gk] {
				d[gk] = crd
			}
		}
	}
	return nil
}

// custom says whether objects of a kind are custom resources that the server has a definition of.
func (s *server) custom(o *object) bool {
	return s.definitions[o.GroupVersionKind().GroupKind()] != nil
}

// foreign says whether an object is of another project's kind.
func (s *server) foreign(o *object) bool { return crds.Custom(o.Unstructured) && !s.custom(o) }

var crdResource = schema.GroupVersionResource{
	Group:   "apiextensions.k8s.io",
	Version: "v1", Resource: "customresourcedefinitions",
}

// define makes the definitions and returns when the server has their kinds.
func (s *server) define(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, defineTimeout, fmt.Errorf("not done within %v", defineTimeout))
	defer cancel()
	for gk, crd := range s.definitions {
		// These are other people's, and large: server-side apply would note the owner of every field.
		_, err := s.client.Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("defining %s: %w", gk, err)
		}
	}
	for {
		err := s.discover()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for CRDs: %w: %w", context.Cause(ctx), err)
		case <-time.After(10 * pollInterval):
		}
	}
}

// discover asks the server for its kinds; an error says which of the definitions it does not serve yet.
func (s *server) discover() error {
	groups, err := restmapper.GetAPIGroupResources(s.Client().Discovery())
	if err != nil {
		return fmt.Errorf("asking for the kinds: %w", err)
	}
	s.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	var missing []error
	for gk := range s.definitions {
		if _, err := s.mapper.RESTMapping(gk); meta.IsNoMatchError(err) {
			missing = append(missing, err)
		}
	}
	return errors.Join(missing...)
}
