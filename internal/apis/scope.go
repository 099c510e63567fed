package apis

import "strings"

// ClusterScoped reports whether objects of a kind of Kubernetes itself are in no namespace.
func ClusterScoped(kind string) bool {
	switch kind {
	case "PersistentVolume", "StorageClass", "Namespace", "PriorityClass", "Node",
		"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
		"RuntimeClass", "IngressClass", "DeviceClass", "CSIDriver", "CSINode", "VolumeAttachment",
		"VolumeAttributesClass", "ServiceCIDR", "IPAddress",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// Plural is the resource of a kind, as Kubernetes and the projects whose kinds tegen renders form it.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	before, isY := strings.CutSuffix(name, "y")
	switch {
	case name == "endpoints":
		return name
	case isY && strings.TrimRight(before, "aeiou") == before:
		return before + "ies"
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		return name + "es"
	}
	return name + "s"
}
