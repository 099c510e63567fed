package apis

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodMonitorKind is of the Prometheus operator v0.85.0, pkg/apis/monitoring/v1.
var PodMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// PodMonitorSpec says which pods of its namespace Prometheus asks for metrics.
type PodMonitorSpec struct {
	Selector            metav1.LabelSelector `json:"selector"`
	PodMetricsEndpoints []PodMetricsEndpoint `json:"podMetricsEndpoints"`
}

// PodMetricsEndpoint is a port of theirs. Prometheus' own defaults hold for what is left out.
type PodMetricsEndpoint struct {
	Port          string         `json:"port"`
	Path          string         `json:"path,omitempty"`
	Interval      string         `json:"interval,omitempty"`
	Scheme        string         `json:"scheme,omitempty"`
	TLSConfig     *TLSConfig     `json:"tlsConfig,omitempty"`
	Authorization *Authorization `json:"authorization,omitempty"`
}

// TLSConfig is how the pods' certificates are checked.
type TLSConfig struct {
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Authorization is a bearer token in a Secret of the PodMonitor's namespace.
type Authorization struct {
	Credentials *corev1.SecretKeySelector `json:"credentials,omitempty"`
}

var prometheusOperator = Controller{
	Name:  "Prometheus operator",
	Since: "v0.85.0",
	Note:  "and a Prometheus of it that selects the PodMonitor, by its labels and its namespace",
	Install: []string{
		"kubectl apply --server-side " +
			"-f https://github.com/prometheus-operator/prometheus-operator/releases/download/v0.85.0/bundle.yaml",
	},
	Check:  "kubectl get prometheuses.monitoring.coreos.com -A",
	Serves: "`metrics: {podMonitor: true}`",
}
