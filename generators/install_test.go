package generators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	shipped "github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/internal/apis"
)

func installation(namespace string) *generators.Installation {
	return &generators.Installation{
		Namespace: namespace, Image: "registry.example/tegen-scheduler:1.2.3", Replicas: 2,
		Config: "kind: KubeSchedulerConfiguration\n", Lease: "election",
	}
}

// eachInstallation calls f for installations into a namespace of their own, of a cluster's, and of the longest name.
func eachInstallation(t *testing.T, f func(t *testing.T, i *generators.Installation, objs []runtime.Object)) {
	t.Helper()
	for _, namespace := range []string{"tegen-system", "kube-system", "n" + strings.Repeat("s", 62)} {
		t.Run(namespace, func(t *testing.T) {
			i := installation(namespace)
			f(t, i, generators.Install(i))
		})
	}
}

// TestInstallProperties: what holds for jobs holds for the scheduler.
func TestInstallProperties(t *testing.T) {
	eachInstallation(t, func(t *testing.T, _ *generators.Installation, objs []runtime.Object) {
		texts(t, objs) // reports what occurs twice
		for _, property := range []string{"names", "kept", "selectors", "references", "limits", "images"} {
			for _, wrong := range properties[property](nil, objs) {
				t.Errorf("%s: %s", property, wrong)
			}
		}
		found := pods(objs)
		if len(found) != 1 {
			t.Fatalf("%d pod templates, want the Deployment's", len(found))
		}
		for _, wrong := range restricted(found[0].spec) {
			t.Errorf("restricted: %s", wrong)
		}
		if c := found[0].spec.Containers[0]; c.SecurityContext.ReadOnlyRootFilesystem == nil ||
			!*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Error("the root filesystem can be written to")
		}
	})
}

// TestInstallRules: no rule has a wildcard, and nothing is granted that a name could still limit.
func TestInstallRules(t *testing.T) {
	eachInstallation(t, func(t *testing.T, i *generators.Installation, objs []runtime.Object) {
		var rules []rbacv1.PolicyRule
		for _, r := range all[*rbacv1.ClusterRole](objs) {
			rules = append(rules, r.Rules...)
		}
		for _, r := range all[*rbacv1.Role](objs) {
			rules = append(rules, r.Rules...)
			if r.Namespace != i.Namespace {
				t.Errorf("a Role in %s", r.Namespace)
			}
		}
		for _, r := range rules {
			for _, words := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
				if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "*") }) {
					t.Errorf("a rule with a wildcard: %+v", r)
				}
			}
			if slices.Contains(r.Resources, "leases") && !slices.Equal(r.Verbs, []string{"create"}) &&
				!slices.Equal(r.ResourceNames, []string{i.Lease}) {
				t.Errorf("other Leases than the scheduler's own: %+v", r)
			}
		}
		if len(rules) == 0 {
			t.Error("no rules were found")
		}
	})
}

// TestInstallBindings: every subject is the account that is rendered and that the pods run under, and every role is
// rendered or Kubernetes' own.
func TestInstallBindings(t *testing.T) {
	eachInstallation(t, func(t *testing.T, i *generators.Installation, objs []runtime.Object) {
		account := all[*corev1.ServiceAccount](objs)[0]
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
		if name := all[*appsv1.Deployment](objs)[0].Spec.Template.Spec.ServiceAccountName; name != account.Name {
			t.Errorf("the pods run as %s, not %s", name, account.Name)
		}
		var system []string
		check := func(binding, namespace string, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
			if diff := cmp.Diff(want, subjects); diff != "" {
				t.Errorf("%s: subjects (-want +got):\n%s", binding, diff)
			}
			rendered := slices.ContainsFunc(objs, func(obj runtime.Object) bool {
				return id(t, obj) == role.Kind+"/"+role.Name &&
					(role.Kind == "ClusterRole" || meta(t, obj).GetNamespace() == namespace)
			})
			if !rendered {
				system = append(system, role.Kind+" "+namespace+"/"+role.Name)
			}
		}
		for _, b := range all[*rbacv1.ClusterRoleBinding](objs) {
			check(b.Name, "", b.Subjects, b.RoleRef)
		}
		for _, b := range all[*rbacv1.RoleBinding](objs) {
			check(b.Name, b.Namespace, b.Subjects, b.RoleRef)
		}
		slices.Sort(system)
		if diff := cmp.Diff([]string{
			"ClusterRole /system:kube-scheduler", "ClusterRole /system:volume-scheduler",
			"Role kube-system/extension-apiserver-authentication-reader",
		}, system); diff != "" {
			t.Errorf("roles that the cluster must have (-want +got):\n%s", diff)
		}
	})
}

// TestInstallSelectors: the budget, the policy and the spread all mean the Deployment's pods.
func TestInstallSelectors(t *testing.T) {
	eachInstallation(t, func(t *testing.T, _ *generators.Installation, objs []runtime.Object) {
		d := all[*appsv1.Deployment](objs)[0]
		budget := all[*policyv1.PodDisruptionBudget](objs)[0].Spec
		for what, s := range map[string]*metav1.LabelSelector{
			"the Deployment": d.Spec.Selector,
			"the budget":     budget.Selector,
			"the policy":     &all[*networkingv1.NetworkPolicy](objs)[0].Spec.PodSelector,
			"the spread":     d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector,
		} {
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil {
				t.Fatal(err)
			}
			if selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
				t.Errorf("%s selects %s, not the pods with %v", what, selector, d.Spec.Template.Labels)
			}
		}
		if m := budget.MaxUnavailable; m == nil || m.IntValue() != 1 || budget.MinAvailable != nil {
			t.Errorf("the budget: %+v, want one pod at a time", budget)
		}
	})
}

// TestInstallConfig: the container reads the rendered text, and another text is another ConfigMap and another template,
// so that it takes effect.
func TestInstallConfig(t *testing.T) {
	one, two := installation("ml"), installation("ml")
	two.Config += "# another\n"
	a, b := generators.Install(one), generators.Install(two)
	for i, objs := range [][]runtime.Object{a, b} {
		m := all[*corev1.ConfigMap](objs)[0]
		if want := []*generators.Installation{one, two}[i].Config; m.Data["config.yaml"] != want {
			t.Errorf("the ConfigMap holds %q, want %q", m.Data, want)
		}
		p := pods(objs)[0].spec
		if p.Volumes[0].ConfigMap.Name != m.Name {
			t.Errorf("the pods mount %s, not %s", p.Volumes[0].ConfigMap.Name, m.Name)
		}
		if want := "--config=" + p.Containers[0].VolumeMounts[0].MountPath +
			"/config.yaml"; !slices.Equal(p.Containers[0].Args, []string{want}) {
			t.Errorf("arguments %q, want %s", p.Containers[0].Args, want)
		}
	}
	was, is := all[*corev1.ConfigMap](a)[0].Name, all[*corev1.ConfigMap](b)[0].Name
	want := []string{
		"+ConfigMap/" + is, "-ConfigMap/" + was,
		"Deployment/tegen-scheduler spec.template.spec.volumes[0].configMap.name",
	}
	if diff := cmp.Diff(want, changed(t, a, b)); diff != "" {
		t.Errorf("a changed configuration changes (-want +got):\n%s", diff)
	}
}

// TestInstallNamespace: a namespace of the scheduler's own enforces restricted pods and may hold critical ones, of a
// rollout too; one that Kubernetes makes is left alone.
func TestInstallNamespace(t *testing.T) {
	i := installation("ml")
	i.Replicas = 3
	objs := generators.Install(i)
	if got := find[*corev1.Namespace](t, objs, "ml").Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the namespace enforces %q", got)
	}
	quota := all[*corev1.ResourceQuota](objs)[0].Spec
	d := all[*appsv1.Deployment](objs)[0].Spec
	if most := int64(*d.Replicas) + int64(d.Strategy.RollingUpdate.MaxSurge.IntValue()); quota.Hard.Pods().
		Value() < most {
		t.Errorf("%s pods may be critical; a rollout has %d", quota.Hard.Pods(), most)
	}
	if class := d.Template.Spec.PriorityClassName; !slices.Contains(quota.ScopeSelector.MatchExpressions[0].Values,
		class) {
		t.Errorf("the quota is not for %s", class)
	}
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "default"} {
		objs := generators.Install(installation(namespace))
		if n, q := len(all[*corev1.Namespace](objs)), len(all[*corev1.ResourceQuota](objs)); n+q > 0 {
			t.Errorf("%s: %d Namespaces and %d ResourceQuotas", namespace, n, q)
		}
	}
}

// TestInstallTwice: installations in two namespaces share no object.
func TestInstallTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, namespace := range []string{"a", "b", "kube-system"} {
		for _, obj := range generators.Install(installation(namespace)) {
			key := meta(t, obj).GetNamespace() + " " + id(t, obj)
			if seen[key] {
				t.Errorf("%s occurs in two installations", key)
			}
			seen[key] = true
		}
	}
}

// TestInstallImage: the pods run the image as the user that it is made for, and leave its entrypoint to it.
func TestInstallImage(t *testing.T) {
	p := pods(generators.Install(installation("ml")))[0].spec
	user := fmt.Sprintf("%d:%d", *p.SecurityContext.RunAsUser, *p.SecurityContext.RunAsGroup)
	if user != shipped.User {
		t.Errorf("the pods run as %s, and the images are made for %s", user, shipped.User)
	}
	if len(p.Containers[0].Command) > 0 {
		t.Errorf("the entrypoint is replaced by %q", p.Containers[0].Command)
	}
}

// TestInstallMonitor: Prometheus is pointed at the pods' port with the token of the account that is rendered, and only
// where that was asked for.
func TestInstallMonitor(t *testing.T) {
	i := installation("ml")
	objs := generators.Install(i)
	if len(all[*apis.Custom[apis.PodMonitorSpec]](objs))+len(all[*corev1.Secret](objs)) > 0 {
		t.Error("there is a PodMonitor or a Secret that nobody asked for")
	}
	i.PodMonitor = true
	objs = generators.Install(i)
	monitor := all[*apis.Custom[apis.PodMonitorSpec]](objs)[0].Spec
	template := all[*appsv1.Deployment](objs)[0].Spec.Template
	monitors(t, monitor, template)
	from := monitor.PodMetricsEndpoints[0].Authorization.Credentials
	token := find[*corev1.Secret](t, objs, from.Name)
	if from.Key != "token" || token.Type != "kubernetes.io/service-account-token" || len(token.Data) > 0 ||
		len(token.StringData) > 0 {
		t.Errorf("the token is %s of %+v, which Kubernetes does not write", from.Key, token)
	}
	account := find[*corev1.ServiceAccount](t, objs, token.Annotations["kubernetes.io/service-account.name"])
	if account.Name == template.Spec.ServiceAccountName {
		t.Error("who asks for metrics has the scheduler's rights")
	}
}

// monitors reports where a PodMonitor does not find a port of a template's pods.
func monitors(t *testing.T, monitor apis.PodMonitorSpec, template corev1.PodTemplateSpec) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
		t.Errorf("the PodMonitor selects %s, not the pods with %v", selector, template.Labels)
	}
	for _, at := range monitor.PodMetricsEndpoints {
		if !slices.ContainsFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == at.Port
		}) {
			t.Errorf("the pods have no port %s", at.Port)
		}
	}
}
