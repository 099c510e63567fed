package generators

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/names"
)

// account carries no token by itself: the Deployment's pods ask for one.
func (i *Installation) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: i.meta(names.Scheduler), AutomountServiceAccountToken: ptr(false)}
}

// access is what the scheduler may do. Kubernetes keeps the roles of its own scheduler in step with what the framework
// and the plugins in it read, release by release, so they are bound rather than copied
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy). Two rules are ours: for gangs that Kubernetes declares itself,
// since the system's role has them only where a feature gate is on, and for a Lease, since the system's role names its
// own.
func (i *Installation) access() []runtime.Object {
	groups := &rbacv1.ClusterRole{ObjectMeta: i.clusterMeta("podgroups"), Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups"},
			Verbs: []string{"get", "list", "watch"},
		},
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups/status"}, Verbs: []string{"patch"}},
	}}
	lease := &rbacv1.Role{ObjectMeta: i.meta(names.Scheduler), Rules: []rbacv1.PolicyRule{
		// Which no name can limit.
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{i.Lease},
			Verbs: []string{"get", "update"},
		},
	}}
	authentication := i.clusterMeta("authentication-reader")
	// Where the API server says how it authenticates those who ask for metrics.
	authentication.Namespace = metav1.NamespaceSystem
	return []runtime.Object{
		groups,
		i.clusterBinding("podgroups", groups.Name),
		i.clusterBinding("kube-scheduler", "system:kube-scheduler"),
		// To bind claims that wait for a first consumer.
		i.clusterBinding("volume-scheduler", "system:volume-scheduler"),
		lease,
		i.binding(i.meta(names.Scheduler), lease.Name),
		i.binding(authentication, names.AuthenticationReader),
	}
}

func (i *Installation) clusterBinding(part, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: i.clusterMeta(part),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   i.subjects(),
	}
}

func (i *Installation) binding(meta metav1.ObjectMeta, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   i.subjects(),
	}
}

func (i *Installation) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: names.Scheduler, Namespace: i.Namespace}}
}
