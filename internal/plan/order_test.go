package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/generators"
)

// TestOrder: objects, pods and Services are reported in the order of the bundle, whatever it is; controllers in that of
// their tables, and what must exist by name.
func TestOrder(t *testing.T) {
	job := load(t, `target: jobset, workers: {replicas: 2}, gang: {scheduler: volcano},
		imagePullSecrets: [omega, alpha],
		rendezvous: {backend: etcd, store: etcd, etcd: {replicas: 3, storage: {size: 4Gi}}},
		storage: [{mountPath: /d, efs: {fileSystem: fs-0123456789abcdef0}}]`)
	bundle := generators.Generate(job)
	concerns := []string{"identity", "storage", "etcd", "network", "disruption", "gang", "worker"}
	owners := []string{"StatefulSet/j-etcd", "JobSet/j"}
	services := []string{"j-etcd-peer", "j-etcd"}
	controllers := []string{"JobSet", "Volcano", "Amazon EFS CSI driver"}
	for _, name := range []string{"as rendered", "backwards"} {
		if name == "backwards" {
			slices.Reverse(bundle)
			slices.Reverse(concerns)
			slices.Reverse(owners)
		}
		t.Run(name, func(t *testing.T) {
			j := Of(job, bundle)
			for what, c := range map[string]struct{ want, got []string }{
				"concerns":    {concerns, each(j.Objects, func(o Object) string { return o.Concern })},
				"owners":      {owners, each(j.PodSets, func(s *PodSet) string { return s.Owner })},
				"services":    {services, each(j.Services, func(s Service) string { return s.Name })},
				"controllers": {controllers, each(j.Controllers, func(c Controller) string { return c.Name })},
				"must exist":  {[]string{"Secret/alpha", "Secret/omega"}, j.Expects},
			} {
				if diff := cmp.Diff(c.want, c.got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// each takes a word of every item, and of equal ones in a row one.
func each[T any](items []T, word func(T) string) (words []string) {
	for _, item := range items {
		words = append(words, word(item))
	}
	return slices.Compact(words)
}
