package generators

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema"
)

// givenHosts are the Services of the namespace that a pod dials and no generator renders: a tracker, a proxy, a server
// of datasets, the store of another job.
func givenHosts(job *schema.Job, pod corev1.PodSpec) []string {
	var out []string
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		out = append(out, refs.Addressed(job.Metadata.Namespace, c)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(host string) bool { return rendersService(job, host) })
}

// rendersService says whether a Service of that name is the job's own.
func rendersService(job *schema.Job, name string) bool {
	if job.Spec.Rendezvous.Store == schema.StoreEtcd && (name == etcdName(job) || name == etcdPeerName(job)) {
		return true
	}
	if job.Spec.Target != schema.TargetPods {
		return name == workerName(job)
	}
	number, ours := strings.CutPrefix(name, workerName(job)+"-")
	i, err := strconv.ParseInt(number, 10, 32)
	return ours && err == nil && slices.Contains(podWorkerNumbers(job), int32(i))
}
