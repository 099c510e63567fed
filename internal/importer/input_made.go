package importer

import (
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// controller is the object that makes this one, by its group, kind and name; false for none. All pods of a group own
// its Workload in Kueue.
func (o *object) controller() (gk apischema.GroupKind, name string, ok bool) {
	for _, owner := range o.view().at("metadata", "ownerReferences").items() {
		if owner.at("controller").isTrue() || o.is("kueue.x-k8s.io", "Workload") {
			gvk := apischema.FromAPIVersionAndKind(owner.at("apiVersion").text(), owner.at("kind").text())
			return gvk.GroupKind(), owner.at("name").text(), true
		}
	}
	return gk, "", false
}

// dropMade takes those objects out of the stream that others of it make: what a cluster has of a job includes the Jobs,
// Services and pods that come of it.
func (s *stream) dropMade() {
	s.objects = slices.DeleteFunc(slices.Clone(s.objects), func(o *object) bool {
		gk, name, ok := o.controller()
		if !ok {
			return false
		}
		owner := s.find(gk.Group, gk.Kind, o.namespace, name)
		if owner == nil || owner == o {
			return false
		}
		s.notes = append(s.notes, o.note(Translated, "%s makes it", owner))
		return true
	})
}
