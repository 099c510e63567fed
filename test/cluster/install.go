package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Apply does what kubectl apply --server-side does.
func (c *Cluster) Apply(ctx context.Context, gvr schema.GroupVersionResource, o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = c.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: "tegen-lab", Force: new(true)})
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// ApplyCRDs applies the CustomResourceDefinitions of files of a program's module, named by a pattern, and waits until
// they are served.
func (c *Cluster) ApplyCRDs(ctx context.Context, program, pattern string) error {
	module, err := Source(ctx, program)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(module, pattern))
	if err != nil {
		return err
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if crd.GetKind() == "CustomResourceDefinition" { // and not a kustomization.yaml
			crds = append(crds, crd)
		}
	}
	if len(crds) == 0 {
		return fmt.Errorf("looking for CustomResourceDefinitions in %s of %s: none there", pattern, module)
	}
	return c.Define(ctx, crds...)
}

// Define applies CustomResourceDefinitions and waits until they are served.
func (c *Cluster) Define(ctx context.Context, crds ...*unstructured.Unstructured) error {
	for _, crd := range crds {
		if err := c.Apply(ctx, definitions, crd); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := c.established(ctx, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// established waits until a CustomResourceDefinition is served.
func (c *Cluster) established(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not within %v", readyTimeout))
	defer cancel()
	for {
		crd, err := c.dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			all, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
			for _, entry := range all {
				if c, ok := entry.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
					return nil
				}
			}
			err = fmt.Errorf("its conditions are %v", all)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for CustomResourceDefinition %s: %w: %w", name, context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// Account makes a namespace, where there is none of that name, and in it a ServiceAccount that is cluster-admin. It
// returns the path of a kubeconfig that signs on as it, so that the audit log says whose a request was.
func (c *Cluster) Account(ctx context.Context, namespace, name string) (string, error) {
	core := c.client.CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	in := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if _, err := core.ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: in},
		metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	token, err := core.ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	k, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		return "", err
	}
	for user := range k.AuthInfos {
		k.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(c.dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*k, path)
}
