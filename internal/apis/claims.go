package apis

import "k8s.io/apimachinery/pkg/runtime/schema"

// ClaimTemplateKind is Kubernetes' own template of claims (k8s.io/api v0.36.3, resource/v1, v1beta2 and v1beta1).
func ClaimTemplateKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "resource.k8s.io", Version: version, Kind: "ResourceClaimTemplate"}
}

// ClaimTemplate is the spec of one.
type ClaimTemplate struct {
	Spec ClaimSpec `json:"spec"`
}

// ClaimSpec is what a claim asks for.
type ClaimSpec struct {
	Devices ClaimedDevices `json:"devices"`
}

// ClaimedDevices are its requests.
type ClaimedDevices struct {
	Requests []DeviceRequest `json:"requests"`
}

// DeviceRequest has its devices in Exactly since v1beta2, and in its own fields in v1beta1.
type DeviceRequest struct {
	Name    string   `json:"name"`
	Exactly *Devices `json:"exactly,omitempty"`
	*Devices
}

// Devices are a number of one class.
type Devices struct {
	DeviceClassName string           `json:"deviceClassName"`
	Selectors       []DeviceSelector `json:"selectors,omitempty"`
	AllocationMode  string           `json:"allocationMode,omitempty"`
	Count           int64            `json:"count,omitempty"`
}

// DeviceSelector is an expression.
type DeviceSelector struct {
	CEL CELSelector `json:"cel"`
}

// CELSelector is one in CEL.
type CELSelector struct {
	Expression string `json:"expression"`
}
