package bundles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// The labels of a namespace that name Pod Security Standards: pods that violate
// the first are refused, the second warned of, the third noted in the audit log.
const (
	labelPrefix  = "pod-security.kubernetes.io/"
	enforceLabel = labelPrefix + "enforce"
	warnLabel    = labelPrefix + "warn"
	auditLabel   = labelPrefix + "audit"
)

// strictNamespace enforces a standard and holds no bundle.
func strictNamespace(standard string) string { return "enforces-" + standard }

// expect makes the classes that bundles say they leave to the cluster, and
// namespaces to try pods in.
func (s *server) expect(ctx context.Context, all []*bundle) error {
	priorities, runtimes := classes(all)
	for name, policy := range priorities {
		class := &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Value:      1000, PreemptionPolicy: policy,
		}
		if _, err := s.Client().SchedulingV1().PriorityClasses().Create(ctx, class,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making PriorityClass %s: %w", name, err)
		}
	}
	for name := range runtimes {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name}
		if _, err := s.Client().NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making RuntimeClass %s: %w", name, err)
		}
	}
	for _, standard := range []string{restricted, baseline} {
		if err := s.enforce(ctx, strictNamespace(standard), standard); err != nil {
			return err
		}
	}
	return nil
}

// classes are the names of the expected PriorityClasses, with the preemption
// policy that pods of theirs have, since a pod that says another than its class
// is refused; and the names of the RuntimeClasses.
func classes(all []*bundle) (priorities map[string]*corev1.PreemptionPolicy, runtimes map[string]bool) {
	priorities, runtimes = map[string]*corev1.PreemptionPolicy{}, map[string]bool{}
	for _, b := range all {
		for _, o := range b.objects {
			for _, name := range o.Expects("RuntimeClass") {
				runtimes[name] = true
			}
			for _, name := range o.Expects("PriorityClass") {
				policy := priorities[name]
				for _, p := range templates(o) {
					if own := corev1.PreemptionPolicy(p.field("preemptionPolicy")); own != "" &&
						p.field("priorityClassName") == name {
						policy = &own
					}
				}
				priorities[name] = policy
			}
		}
	}
	return priorities, runtimes
}

// prepare makes the namespaces that a bundle does not bring along, which
// enforce, warn of and audit its standard, with what it expects there.
func (s *server) prepare(ctx context.Context, b *bundle) error {
	for _, name := range b.namespaces() {
		if b.brings(name) {
			continue
		}
		if s.standards[name] != b.standard() {
			if err := s.enforce(ctx, name, b.standard()); err != nil {
				return err
			}
		}
		if err := s.makeAccounts(ctx, b, name); err != nil {
			return err
		}
	}
	return nil
}

// makeAccounts makes the ServiceAccounts that a bundle expects in a namespace.
func (s *server) makeAccounts(ctx context.Context, b *bundle, namespace string) error {
	for _, name := range b.accounts(namespace) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.Client().CoreV1().ServiceAccounts(namespace).Create(ctx, account,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making ServiceAccount %s/%s: %w", namespace, name, err)
		}
	}
	return nil
}

func (s *server) deleteAccounts(ctx context.Context, b *bundle) error {
	var errs []error
	for _, namespace := range b.namespaces() {
		for _, name := range b.accounts(namespace) {
			if err := s.Client().CoreV1().ServiceAccounts(namespace).Delete(ctx, name,
				metav1.DeleteOptions{}); err != nil {
				errs = append(errs, fmt.Errorf("deleting ServiceAccount %s/%s: %w", namespace, name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// enforce makes a namespace or labels the one that is there.
func (s *server) enforce(ctx context.Context, name, standard string) error {
	_, err := s.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	if _, err := s.label(ctx, name, standard, standard); err != nil {
		return err
	}
	s.standards[name] = standard
	return nil
}

// watchOver makes a namespace that a bundle brought along, and that enforces
// what the bundle says, warn and audit by the bundle's standard, and makes what
// the bundle expects there.
func (s *server) watchOver(ctx context.Context, is *unstructured.Unstructured, b *bundle) (*unstructured.Unstructured,
	error,
) {
	name := is.GetName()
	is, err := s.label(ctx, name, cmp.Or(is.GetLabels()[enforceLabel], b.standard()), b.standard())
	if err != nil {
		return nil, err
	}
	return is, s.makeAccounts(ctx, b, name)
}

// label sets the labels of a namespace and returns when the server admits by
// them: it learns of them some milliseconds later.
func (s *server) label(ctx context.Context, name, enforced, watched string) (*unstructured.Unstructured, error) {
	labels := map[string]string{enforceLabel: enforced, warnLabel: watched, auditLabel: watched}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return nil, err
	}
	ctx, _, cancel := request(ctx)
	defer cancel()
	is, err := s.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cluster-admin"})
	if err != nil {
		return nil, fmt.Errorf("labelling namespace %s: %w", name, err)
	}
	for ; ; time.Sleep(pollInterval) {
		// The tried pods are of the account that a controller makes.
		_, err := s.Client().CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("waiting for the ServiceAccount of namespace %s: %w", name, err)
		}
	}
	return is, s.awaitEnforcement(ctx, name, enforced)
}

// awaitEnforcement tries pods that are known to violate a standard until the
// namespace refuses them as its label says, and so shows that an admitted pod
// was looked at.
func (s *server) awaitEnforcement(ctx context.Context, namespace, standard string) error {
	refused := map[string]bool{} // by standard: a pod that violates it and no weaker one
	for ; ; time.Sleep(pollInterval) {
		for violated, pod := range map[string]corev1.PodSpec{restricted: {}, baseline: {HostNetwork: true}} {
			pod.Containers = []corev1.Container{{Name: "c", Image: "example.com/c:1"}}
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
			if err != nil {
				return err
			}
			_, err = s.try(ctx, namespace, map[string]any{"spec": spec})
			if err != nil && !violates(err) {
				return fmt.Errorf("waiting for namespace %s to enforce the standard %s (by standard, "+
					"whether it refused a pod that violates it: %v): %w",
					namespace, standard, refused, err)
			}
			refused[violated] = err != nil
		}
		if refused[restricted] == (standard == restricted) && refused[baseline] == (standard != privileged) {
			return nil
		}
	}
}
