package refs

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/names"
)

// delivery checks what a transformer of kustomize breaks for reconcilers, whatever the kind of the object.
func (c *checker) delivery(obj runtime.Object) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	if meta.GetLabels()[names.LabelData] != "" && !madeInCluster(meta) {
		c.stays(obj, meta)
	}
	c.installed(obj, meta)
}

// madeInCluster says whether an object of a cluster is a controller's, which no reconciler deletes: it is not in git.
// The claims of a StatefulSet have its template's labels and no owner, and nothing of what tegen writes on its own.
func madeInCluster(meta metav1.Object) bool {
	if meta.GetUID() == "" {
		return false
	}
	for _, wanted := range names.Keeps() {
		if _, ok := meta.GetAnnotations()[wanted[0]]; ok {
			return len(meta.GetOwnerReferences()) > 0
		}
	}
	return true
}

// stays checks that no reconciler deletes an object that outlives its job.
func (c *checker) stays(obj runtime.Object, meta metav1.Object) {
	from, annotations := object{id: idOf(obj, meta)}, meta.GetAnnotations()
	for _, wanted := range names.Keeps() {
		key, option := wanted[0], wanted[1]
		if !slices.Contains(options(annotations[key]), option) {
			c.broken(ruleDelivery, &from, annotationAt(key), option,
				"it is not there, so that a reconciler would prune what outlives its "+
					"job; did a transformer replace the annotation? keep it from objects with the label "+
					names.LabelData+", and keep an installation in a directory of its own")
		}
	}
	for _, all := range []map[string]string{annotations, meta.GetLabels()} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if names.Recreates(key, all[key]) {
				c.broken(ruleDelivery, &from, annotationAt(key), all[key],
					"a reconciler would delete this object, which outlives its job, "+
						"and make it anew; keep what a transformer adds from objects with the label "+
						names.LabelData)
			}
		}
	}
}

func annotationAt(key string) place { return place{path: "metadata", list: "annotations", name: key} }

func options(list string) []string {
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Moved says what is wrong with an installation that is not in the place that it was rendered for.
const Moved = "a namespace or prefix of a kustomization moved what 'tegen install' rendered for another place, and " +
	"its configuration, roles and addresses stayed behind: keep it out of that kustomization, in a directory of its " +
	"own that is applied as it is, and choose the place by 'tegen install --namespace'"

// installed checks that an installation is where it was rendered for. A RoleBinding to a role of kube-system may be
// moved alone, by the namespace of the installation.
func (c *checker) installed(obj runtime.Object, meta metav1.Object) {
	from := object{id: idOf(obj, meta)}
	if at := meta.GetAnnotations()[names.InstalledAs]; at != "" && at != meta.GetNamespace()+"/"+meta.GetName() {
		c.broken(ruleMoved, &from, place{path: "metadata"}, at, Moved)
	}
	binding, ok := obj.(*rbacv1.RoleBinding)
	if ok && binding.Labels[names.LabelManagedBy] == names.ManagedBy && binding.Namespace != metav1.NamespaceSystem &&
		binding.RoleRef.Name == names.AuthenticationReader {
		c.broken(ruleMoved, &from, place{path: "metadata.namespace"}, metav1.NamespaceSystem, Moved)
	}
}
