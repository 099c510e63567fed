package plan

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// requests are what a scheduler reserves for a pod, by its own code: the containers' sum or the largest init container,
// sidecars and overhead included. What is zero is left out.
func requests(pod *corev1.Pod) corev1.ResourceList {
	list := helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true})
	for name, q := range list {
		if q.IsZero() {
			delete(list, name)
		}
	}
	return list
}

// complete does to a pod what an API server would: a limit alone is a request too, and on the node's network a
// container's port is the node's.
func complete(pod *corev1.Pod) {
	for c := range containers(pod) {
		for name, q := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				if c.Resources.Requests == nil {
					c.Resources.Requests = corev1.ResourceList{}
				}
				c.Resources.Requests[name] = q
			}
		}
		for p := range c.Ports {
			if pod.Spec.HostNetwork && c.Ports[p].HostPort == 0 {
				c.Ports[p].HostPort = c.Ports[p].ContainerPort
			}
		}
	}
}

func add(sum, list corev1.ResourceList) {
	for name, q := range list {
		s := sum[name]
		s.Add(q)
		sum[name] = s
	}
}

func times(list corev1.ResourceList, n int32) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		q = q.DeepCopy()
		q.Mul(int64(n))
		out[name] = q
	}
	return out
}

// amounts are resources as schedulers count them: thousandths of a CPU, and whole units of all others.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list)+1)
	for name, q := range list {
		out[name] = amount(name, q)
	}
	return out
}

func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	v := q.Value()
	switch {
	case name != corev1.ResourceCPU:
		return v
	case v > math.MaxInt64/1000: // nobody has that many, but anybody can write it
		return math.MaxInt64
	case v < math.MinInt64/1000:
		return math.MinInt64
	}
	return q.MilliValue()
}

// less is a-b, held at the ends of its range.
func less(a, b int64) int64 {
	switch {
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	}
	return a - b
}

// subtract takes needs away so many times; what is not counted at all stays so.
func (a amounts) subtract(needs amounts, times int64) {
	for name, need := range needs {
		if have, ok := a[name]; ok {
			a[name] = less(have, need*times)
		}
	}
}

// quantities are amounts for people and JSON.
func (a amounts) quantities() corev1.ResourceList {
	out := make(corev1.ResourceList, len(a))
	for name, v := range a {
		switch name {
		case corev1.ResourceCPU:
			out[name] = *resource.NewMilliQuantity(v, resource.DecimalSI)
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			out[name] = *resource.NewQuantity(v, resource.BinarySI)
		default:
			out[name] = *resource.NewQuantity(v, resource.DecimalSI)
		}
	}
	return out
}
