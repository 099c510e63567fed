package generators

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
)

// metricsAccount names the account that may read the scheduler's metrics and do nothing else, and its Secret.
const metricsAccount = names.Scheduler + "-metrics"

// monitor has Prometheus ask each replica for its metrics. The scheduler answers those alone whom the API server lets
// read /metrics, so there is an account for it, whose token Kubernetes writes into a Secret that is rendered without
// data. The certificate is one that the scheduler makes for itself when it starts.
func (i *Installation) monitor() []runtime.Object {
	if !i.PodMonitor {
		return nil
	}
	role := &rbacv1.ClusterRole{ObjectMeta: i.clusterMeta("metrics"), Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}}
	token := &corev1.Secret{ObjectMeta: i.meta(metricsAccount), Type: corev1.SecretTypeServiceAccountToken}
	annotate(&token.ObjectMeta, corev1.ServiceAccountNameKey, metricsAccount)
	return []runtime.Object{
		&corev1.ServiceAccount{ObjectMeta: i.meta(metricsAccount), AutomountServiceAccountToken: ptr(false)},
		token,
		role,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: i.clusterMeta("metrics"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Name: metricsAccount, Namespace: i.Namespace},
			},
		},
		podMonitor(i.meta(names.Scheduler), i.selector(), apis.PodMetricsEndpoint{
			Port: "https", Scheme: "https",
			TLSConfig: &apis.TLSConfig{InsecureSkipVerify: true},
			Authorization: &apis.Authorization{Credentials: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: metricsAccount},
				Key:                  corev1.ServiceAccountTokenKey,
			}},
		}),
	}
}

func podMonitor(meta metav1.ObjectMeta, selector map[string]string, at apis.PodMetricsEndpoint) runtime.Object {
	return apis.New(apis.PodMonitorKind, meta, apis.PodMonitorSpec{
		Selector:            metav1.LabelSelector{MatchLabels: selector},
		PodMetricsEndpoints: []apis.PodMetricsEndpoint{at},
	})
}
