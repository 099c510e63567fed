package gitops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// Objects are what was applied.
type Objects struct {
	lab *Lab
	all []object
}

type object struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// Apply does what kubectl apply --server-side -f - does.
func (l *Lab) Apply(ctx context.Context, manifests string) (*Objects, error) {
	groups, err := restmapper.GetAPIGroupResources(l.Client().Discovery())
	if err != nil {
		return nil, fmt.Errorf("asking what is served: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	applied := &Objects{lab: l}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return applied, nil
		}
		if err != nil {
			return applied, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return applied, fmt.Errorf("reading what is to be applied: %w", err)
		}
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return applied, err
		}
		if err := l.Cluster.Apply(ctx, mapping.Resource, o); err != nil {
			return applied, err
		}
		applied.all = append(applied.all, object{mapping.Resource, o.GetNamespace(), o.GetName()})
	}
}

// Delete deletes them, the last first, and waits until they are gone.
func (o *Objects) Delete(ctx context.Context) error {
	for _, object := range slices.Backward(o.all) {
		if err := remove(ctx, o.lab.Cluster, object.gvr, object.namespace, object.name); err != nil {
			return err
		}
	}
	return nil
}

// Refresh has Argo CD look for what an ApplicationSet makes Applications of, and waits until it has.
func (a *Argo) Refresh(ctx context.Context, set string) error {
	const annotation = "argocd.argoproj.io/application-set-refresh"
	client := a.c.Dynamic().Resource(applicationSets).Namespace(argoNamespace)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, annotation)
	if _, err := client.Patch(ctx, set, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	return eventually(ctx, "ApplicationSet "+set, func() error {
		o, err := client.Get(ctx, set, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if status, reason, message := conditionOf(o, "ErrorOccurred"); status == "True" {
			return fmt.Errorf("it has an error (%s): %s", reason, message)
		}
		if _, waits := o.GetAnnotations()[annotation]; waits {
			return errNotYet
		}
		return nil
	})
}

// Gone waits until an Application is deleted.
func (a *Argo) Gone(ctx context.Context, name string) error {
	return eventually(ctx, "Application "+name+" to go", func() error {
		_, err := a.c.Dynamic().Resource(applications).Namespace(argoNamespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errNotYet
		}
		return err
	})
}
