package operators

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// jobSetSlices: each slice is a Job, and its pods have the labels and host names by which they know their ranks.
func jobSetSlices(p *place) {
	objects := p.golden("workers-slices")
	p.apply(objects...)
	p.eventually("four pods in each of two slices", func() error {
		pods, err := p.pods(objects[0].GetNamespace(), "tegen.dev/job=sliced-jax")
		if err != nil {
			return err
		}
		ranks := sets.New[string]()
		for i := range pods {
			l := pods[i].Labels
			rank := l["jobset.sigs.k8s.io/job-index"] + "-" + l[batchv1.JobCompletionIndexAnnotation]
			want := "sliced-jax-worker-" + rank + ".sliced-jax"
			if got := pods[i].Spec.Hostname + "." + pods[i].Spec.Subdomain; got != want {
				return fmt.Errorf("pod %s is called %s in DNS, want %s", pods[i].Name, got, want)
			}
			ranks.Insert(rank)
		}
		for slice := range 2 {
			for i := range 4 {
				if rank := fmt.Sprintf("%d-%d", slice, i); !ranks.Has(rank) {
					return fmt.Errorf("no pod has rank %s, of %v", rank, sets.List(ranks))
				}
			}
		}
		return nil
	})
}
