package gitops

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

	"github.com/tegen-dev/tegen/test/cluster"
)

const (
	// patience is for one sync: seconds for a job, minutes for hundreds of them on a machine that also compiles.
	patience = 8 * time.Minute
	poll     = 250 * time.Millisecond
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// applyCRDs applies the CustomResourceDefinitions of a folder of a program's module and waits until they are served.
func applyCRDs(ctx context.Context, c *cluster.Cluster, program, folder string) error {
	module, err := cluster.Source(ctx, program)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(module, folder, "*.yaml"))
	if err != nil {
		return err
	}
	client := c.Dynamic().Resource(definitions)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if crd.GetKind() != "CustomResourceDefinition" { // a kustomization.yaml
			continue
		}
		names = append(names, crd.GetName())
		if err := apply(ctx, c, definitions, crd); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("looking for CustomResourceDefinitions in %s of %s: none there", folder, module)
	}
	return eventually(ctx, "CustomResourceDefinitions of "+program, func() error {
		for _, name := range names {
			crd, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if condition(crd, "Established") != "True" {
				return fmt.Errorf("%s: %w", name, errNotYet)
			}
		}
		return nil
	})
}

// apply does what kubectl apply --server-side does.
func apply(ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource,
	o *unstructured.Unstructured,
) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = c.Dynamic().Resource(gvr).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: "tegen-lab", Force: new(true)})
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// account makes a namespace and a cluster-admin in it, as both projects' own installations do, and returns the path of
// a kubeconfig that signs on as it. So the audit log says whose a request was.
func account(ctx context.Context, c *cluster.Cluster, namespace, name string) (string, error) {
	core := c.Client().CoreV1()
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
	if _, err := c.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
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
	k, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return "", err
	}
	for user := range k.AuthInfos {
		k.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(c.Dir(), name+".kubeconfig")
	return path, clientcmd.WriteToFile(*k, path)
}

// eventually waits until check has no complaint.
func eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(poll):
		}
	}
}

// condition is the status of a condition; "" where there is none.
func condition(o *unstructured.Unstructured, of string) string {
	status, _, _ := conditionOf(o, of)
	return status
}

func conditionOf(o *unstructured.Unstructured, of string) (status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range all {
		c, _ := entry.(map[string]any)
		if c["type"] == of {
			text := func(key string) string { value, _ := c[key].(string); return value }
			return text("status"), text("reason"), text("message")
		}
	}
	return "", "", ""
}

// field is a string of an object's fields; "" where there is none.
func field(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

// remove deletes an object as kubectl does, with what it owns, and waits until its finalizers have let it go.
func remove(ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace, name string) error {
	client := c.Dynamic().Resource(gvr).Namespace(namespace)
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if err := client.Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return eventually(ctx, gvr.Resource+" "+name+" to go", func() error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errNotYet
		}
		return err
	})
}

func memory(processes map[string]*cluster.Process) (map[string]int, error) {
	all := map[string]int{}
	for name, p := range processes {
		mib, err := residentMemory(p.Pid())
		if err != nil {
			return nil, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		all[name] = mib
	}
	return all, nil
}
