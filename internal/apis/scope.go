package apis

// ClusterScoped reports whether objects of a kind of Kubernetes itself are in no namespace.
func ClusterScoped(kind string) bool {
	switch kind {
	case "PersistentVolume", "StorageClass", "Namespace", "PriorityClass", "Node",
		"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
		"RuntimeClass", "IngressClass", "DeviceClass", "CSIDriver", "CSINode", "VolumeAttachment",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return false
}
