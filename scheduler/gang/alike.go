package gang

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// alike says whether two pods have the same shape, at a small part of the price. It may say no of pods that have: it is
// asked of the pods of one template, one after another.
func alike(a, b *corev1.Pod, overlooked []string) bool {
	x, y := &a.Spec, &b.Spec
	return a.Namespace == b.Namespace && x.NodeName == y.NodeName && x.HostNetwork == y.HostNetwork &&
		covers(a.Labels, b.Labels, overlooked) && covers(b.Labels, a.Labels, overlooked) &&
		slices.EqualFunc(x.Containers, y.Containers, asksAlike) &&
		slices.EqualFunc(x.InitContainers, y.InitContainers, asksAlike) &&
		sameAmounts(x.Overhead, y.Overhead) && sameBehind(x.Resources, y.Resources) &&
		sameBehind(x.Affinity, y.Affinity) && sameBehind(x.Priority, y.Priority) &&
		maps.Equal(x.NodeSelector, y.NodeSelector) && sameList(x.Tolerations, y.Tolerations) &&
		sameList(x.TopologySpreadConstraints, y.TopologySpreadConstraints) &&
		sameList(elsewhere(x.Volumes), elsewhere(y.Volumes)) && sameList(x.ResourceClaims, y.ResourceClaims)
}

// covers says whether some labels, but for those that are overlooked, are among others.
func covers(all, some map[string]string, overlooked []string) bool {
	for key, value := range some {
		if other, ok := all[key]; (!ok || other != value) && !slices.Contains(overlooked, key) {
			return false
		}
	}
	return true
}

func asksAlike(a, b corev1.Container) bool {
	return a.Image == b.Image && slices.Equal(a.Ports, b.Ports) && sameBehind(a.RestartPolicy, b.RestartPolicy) &&
		sameAmounts(a.Resources.Requests, b.Resources.Requests) &&
		sameAmounts(a.Resources.Limits, b.Resources.Limits) &&
		slices.Equal(a.Resources.Claims, b.Resources.Claims)
}

func sameAmounts(a, b corev1.ResourceList) bool {
	for name, amount := range a {
		if other, ok := b[name]; !ok || amount.Cmp(other) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}

// sameBehind looks behind pointers, which differ from pod to pod.
func sameBehind[T any](a, b *T) bool { return a == nil && b == nil || reflect.DeepEqual(a, b) }

// sameList tells no list from an empty one.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}
