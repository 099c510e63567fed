package install_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbacvalidation "k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/tegen-dev/tegen/internal/install"
)

// authorizing is an API server's own authorizer, over the roles that every cluster starts with and those that are
// rendered. Without the rendered bindings the account may do nothing.
func authorizing(t *testing.T, objs []runtime.Object) authorizer.Authorizer {
	t.Helper()
	var roles []*rbacv1.Role
	var bindings []*rbacv1.RoleBinding
	var clusterRoles []*rbacv1.ClusterRole
	var clusterBindings []*rbacv1.ClusterRoleBinding
	for _, r := range bootstrappolicy.ClusterRoles() {
		clusterRoles = append(clusterRoles, &r)
	}
	for _, in := range bootstrappolicy.NamespaceRoles() {
		for _, r := range in {
			roles = append(roles, &r)
		}
	}
	for _, obj := range objs {
		switch o := obj.(type) {
		case *rbacv1.Role:
			roles = append(roles, o)
		case *rbacv1.RoleBinding:
			bindings = append(bindings, o)
		case *rbacv1.ClusterRole:
			clusterRoles = append(clusterRoles, o)
		case *rbacv1.ClusterRoleBinding:
			clusterBindings = append(clusterBindings, o)
		}
	}
	_, static := rbacvalidation.NewTestRuleResolver(roles, bindings, clusterRoles, clusterBindings)
	return rbac.New(static, static, static, static)
}

// TestAccess asks what the scheduler does of the roles of this release of Kubernetes with the rendered ones, and what
// it has no business to do.
func TestAccess(t *testing.T) {
	objs, err := install.Scheduler(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := authorizing(t, objs)
	for _, tc := range []struct {
		verb, group, resource, sub, namespace, name string
		want                                        bool
		why                                         string
	}{
		{"watch", "", "nodes", "", "", "", true, "places to bind to"},
		{"watch", "", "pods", "", "", "", true, "pods to place"},
		{"create", "", "pods", "binding", "train", "a", true, "placing"},
		{"patch", "", "pods", "status", "train", "a", true, "conditions of gangs, and of victims"},
		{"delete", "", "pods", "", "train", "a", true, "victims of preemption"},
		{"create", "events.k8s.io", "events", "", "train", "", true, "reasons"},
		{"patch", "events.k8s.io", "events", "", "train", "a", true, "reasons that repeat"},
		{"list", "policy", "poddisruptionbudgets", "", "", "", true, "budgets of victims"},
		{"list", "storage.k8s.io", "storageclasses", "", "", "", true, "claims that wait for a first consumer"},
		{"update", "", "persistentvolumeclaims", "", "train", "a", true, "binding claims"},
		{"watch", "scheduling.k8s.io", "podgroups", "", "", "", true, "gangs that Kubernetes declares"},
		{"patch", "scheduling.k8s.io", "podgroups", "status", "train", "a", true, "their conditions"},
		{"create", "coordination.k8s.io", "leases", "", "ml", "", true, "the first election"},
		{"update", "coordination.k8s.io", "leases", "", "ml", "tegen-scheduler", true, "staying the leader"},
		{
			"get", "", "configmaps", "", "kube-system", "extension-apiserver-authentication", true,
			"who asks for metrics",
		},
		{"create", "authentication.k8s.io", "tokenreviews", "", "", "", true, "who asks for metrics"},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true, "who may have metrics"},

		{"update", "coordination.k8s.io", "leases", "", "ml", "other", false, "somebody's Lease"},
		{"update", "coordination.k8s.io", "leases", "", "kube-node-lease", "a", false, "a node's heartbeat"},
		{"update", "scheduling.k8s.io", "podgroups", "", "train", "a", false, "an author's gang"},
		{"delete", "scheduling.k8s.io", "podgroups", "", "train", "a", false, "an author's gang"},
		{"get", "", "secrets", "", "train", "a", false, "Secrets"},
		{"get", "", "configmaps", "", "kube-system", "coredns", false, "configuration of others"},
		{"create", "", "pods", "", "train", "", false, "pods of its own"},
		{"create", "", "pods", "exec", "train", "a", false, "commands in pods"},
		{"patch", "", "nodes", "", "", "a", false, "nodes"},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", "", false, "rights"},
	} {
		got, _, err := server.Authorize(t.Context(), authorizer.AttributesRecord{
			User: serviceaccount.UserInfo("ml", "tegen-scheduler", ""), ResourceRequest: true, APIVersion: "v1",
			Verb: tc.verb, APIGroup: tc.group, Resource: tc.resource, Subresource: tc.sub, Namespace: tc.namespace,
			Name: tc.name,
		})
		if err != nil {
			t.Error(err)
		}
		if (got == authorizer.DecisionAllow) != tc.want {
			t.Errorf("%s %s/%s %s in %q (%s): allowed %t", tc.verb, tc.resource, tc.sub, tc.name, tc.namespace, tc.why,
				!tc.want)
		}
	}
}

// TestMetricsAccess: who asks for metrics may do nothing else, and has a token only where a PodMonitor was asked for.
func TestMetricsAccess(t *testing.T) {
	o := options
	for _, monitored := range []bool{false, true} {
		o.PodMonitor = monitored
		objs, err := install.Scheduler(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		server, user := authorizing(t, objs), serviceaccount.UserInfo("ml", "tegen-scheduler-metrics", "")
		for _, a := range []struct {
			authorizer.AttributesRecord
			want bool
		}{
			{authorizer.AttributesRecord{Verb: "get", Path: "/metrics"}, monitored},
			{authorizer.AttributesRecord{Verb: "post", Path: "/metrics"}, false},
			{authorizer.AttributesRecord{Verb: "get", Path: "/configz"}, false},
			{authorizer.AttributesRecord{Verb: "list", Resource: "pods", ResourceRequest: true}, false},
			{authorizer.AttributesRecord{Verb: "get", Resource: "secrets", ResourceRequest: true}, false},
		} {
			a.User, a.APIVersion = user, "v1"
			got, _, err := server.Authorize(t.Context(), a.AttributesRecord)
			if err != nil {
				t.Error(err)
			}
			if (got == authorizer.DecisionAllow) != a.want {
				t.Errorf("monitored %t: %s %s%s: allowed %t", monitored, a.Verb, a.Path, a.Resource, !a.want)
			}
		}
	}
}
