package krm

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
)

// Objects are the objects of each bundle, in the order of Bundles. Where further
// transformers ran after tegen, they are found by the labels that name their job, and come without their concerns.
func (out *Output) Objects() ([][]generators.Concern, error) {
	all := make([][]generators.Concern, len(out.Bundles))
	named := map[string][]int{} // bundles without files, by their job's name
	for i := range out.Bundles {
		all[i] = out.Bundles[i].Objects()
		if len(out.Bundles[i].Files) == 0 {
			name := out.Bundles[i].Summary.Name
			named[name] = append(named[name], i)
		}
	}
	if len(named) == 0 {
		return all, nil
	}
	rest, err := manifest.Read("the overlay", out.Rest)
	if err != nil {
		return nil, err
	}
	found := map[int][]runtime.Object{}
	for _, obj := range rest {
		if m, err := meta.Accessor(obj); err == nil {
			job := names.JobOf(func(key string) string { return m.GetLabels()[key] })
			if among := named[job]; len(among) > 0 {
				i := out.sameNamespace(among, m.GetNamespace(), m.GetLabels()[names.LabelNamespace])
				found[i] = append(found[i], obj)
			}
		}
	}
	for i, objects := range found {
		all[i] = append(all[i], generators.Concern{Objects: objects})
	}
	return all, nil
}

// sameNamespace chooses among the bundles of jobs of one name; the first, if the overlay changed all their namespaces.
func (out *Output) sameNamespace(among []int, namespaces ...string) int {
	for _, i := range among {
		for _, namespace := range namespaces {
			if out.Bundles[i].Summary.Namespace == namespace {
				return i
			}
		}
	}
	return among[0]
}
