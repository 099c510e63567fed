package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The words of network.egress.
const (
	EgressOpen      = "open"
	EgressNamespace = "namespace"
	EgressCluster   = "cluster"
	EgressClosed    = "closed"
)

// Peer mirrors #Peer: pods by their namespaces and labels, or a range of addresses.
type Peer struct {
	Namespace       string            `json:"namespace,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	Pods            map[string]string `json:"pods,omitempty"`
	CIDR            string            `json:"cidr,omitempty"`
	Ports           []int32           `json:"ports"`
}

// Metrics mirrors #Metrics.
type Metrics struct {
	Port       int32            `json:"port"`
	PodMonitor bool             `json:"podMonitor"`
	Path       string           `json:"path,omitempty"`
	Interval   *metav1.Duration `json:"interval,omitempty"`
}
