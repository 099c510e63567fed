package generators

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema"
)

// givenHosts are the Services that an author's own words dial and no generator renders: a tracker, a proxy, a store of
// another job. The author says that they exist.
func givenHosts(job *schema.Job) []string {
	c := corev1.Container{Command: job.Spec.Command, Args: job.Spec.Args}
	for _, e := range job.Spec.Env {
		if e.Value != nil {
			c.Env = append(c.Env, corev1.EnvVar{Name: e.Name, Value: *e.Value})
		}
	}
	if job.Spec.Rendezvous.Store == schema.StoreExternal {
		c.Env = append(c.Env, corev1.EnvVar{Name: "ENDPOINT", Value: job.Spec.Rendezvous.Endpoint})
	}
	return slices.DeleteFunc(refs.Addressed(job.Metadata.Namespace, c), func(host string) bool { return rendersService(job, host) })
}

func rendersService(job *schema.Job, name string) bool {
	for _, obj := range append(service(job), etcd(job)...) {
		if s, ok := obj.(*corev1.Service); ok && s.Name == name {
			return true
		}
	}
	return false
}
