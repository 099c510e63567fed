package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
)

// Changed reports the objects that were changed after they were rendered, although their names have a hash of what they
// were. What is rendered has none; what patches and transformers make of it may.
func Changed(objects []runtime.Object) (list finding.List) {
	for _, group := range generators.Changed(objects) {
		var ids []string
		hash, fix := "", "make the change in the TrainingJob, or in a kustomization that is built before tegen runs"
		for _, obj := range group {
			ids = append(ids, id(obj))
			if m, err := meta.Accessor(obj); err == nil {
				hash = m.GetAnnotations()[names.ContentHash]
			}
			if gvk, err := manifest.GVK(obj); err == nil && gvk.Kind == "ConfigMap" {
				fix = "give 'tegen install' the changed configuration"
			}
		}
		who := strings.Join(append([]string{"this object"}, ids[1:]...), " or ")
		list = append(list, finding.Finding{
			Rule: "reference/hash", Level: finding.Error, Object: ids[0],
			Field: "metadata.annotations[" + names.ContentHash + "]",
			Message: hash + " is the hash of other content: " + who + " was changed after tegen rendered it, and " +
				"the API " +
				"server refuses the next such change; " + fix,
		})
	}
	return list
}

// Renamed notes references to what their objects expect in a cluster, where the set has it under a longer name: a
// prefix, suffix or hash of a kustomization changes a name, and the references that kustomize knows of.
func Renamed(objects []runtime.Object) (notes finding.List) {
	inSet, of := map[refs.Object]bool{}, map[[2]string][]string{} // names, by kind and namespace
	expected := map[refs.Object]bool{}
	for _, obj := range objects {
		m, err := meta.Accessor(obj)
		gvk, noKind := manifest.GVK(obj)
		if err != nil || noKind != nil {
			continue
		}
		inSet[refs.Object{Kind: gvk.Kind, Namespace: m.GetNamespace(), Name: m.GetName()}] = true
		of[[2]string{gvk.Kind, m.GetNamespace()}] = append(of[[2]string{gvk.Kind, m.GetNamespace()}], m.GetName())
		for entry := range strings.SplitSeq(m.GetAnnotations()[names.Expects], ",") {
			if kind, name, ok := strings.Cut(strings.TrimSpace(entry), "/"); ok {
				expected[refs.Object{Kind: kind, Namespace: m.GetNamespace(), Name: name}] = true
			}
		}
	}
	longer := map[refs.Object]string{}
	for o := range expected {
		for _, name := range of[[2]string{o.Kind, o.Namespace}] {
			if !inSet[o] && strings.Contains(name, o.Name) && (longer[o] == "" || name < longer[o]) {
				longer[o] = name
			}
		}
	}
	if len(longer) == 0 {
		return nil
	}
	for _, l := range refs.Links(objects) {
		if name := longer[l.To]; name != "" && l.How == refs.Uses {
			notes = append(notes, finding.Finding{
				Rule: "reference/renamed", Level: finding.Note, Object: l.From.Kind + " " + l.From.Namespace + "/" +
					l.From.Name,
				Message: "it needs " + l.To.Kind + " " + l.To.Name + ", and the set has " + name + "; if a " +
					"kustomization " +
					"renamed it, name the field under nameReference in a configuration of kustomize",
			})
		}
	}
	return notes.Once()
}
