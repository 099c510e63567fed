package operators

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// koordinator is expected to do of each release what docs/gangs.md says of it.
var koordinator = program{
	name: "Koordinator", kinds: []string{"Pod"},
	definitions: []string{
		"reservations.scheduling.koordinator.sh/v1alpha1", "podgroups.scheduling.sigs.k8s.io/v1alpha1",
	},
	log: "koordinator", controller: "koord-app=koord-scheduler",
	probe: woken(func(p *place) {
		p.nodes(1, 0, "")
		objects := p.golden("gang")
		p.apply(objects...)
		p.running(4, p.the("Job", objects).GetNamespace(), workers)
	}),
	scenarios: []scenario{
		{"gang-elastic", woken(koordinatorElastic)},
		{"Strict, min 4 of 4", woken(koordinatorGang("Strict").allOrNone)},
		{"NonStrict, min 4 of 4", woken(koordinatorGang("NonStrict").allOrNone)},
		{"Strict, min 2 of 4", woken(koordinatorAtLeast("Strict"))},
		{"NonStrict, min 2 of 4", woken(koordinatorAtLeast("NonStrict"))},
		{"Strict, two contend", woken(koordinatorGang("Strict").contend)},
		{"two of one group", woken(koordinatorGroup)},
		{"Strict lets go", woken(koordinatorGang("Strict").letsGo)},
		{"NonStrict, two and two", woken(koordinatorHolds)},
		{"Strict, one is lost", woken(koordinatorGang("Strict").mends)},
		{"NonStrict, one is lost", woken(koordinatorGang("NonStrict").mends)},
		{"topology, required", koordinatorTopology(topologies.required)},
		{"topology, preferred", koordinatorTopology(topologies.preferred)},
		{"topology, slices", koordinatorTopology(topologies.slices)},
	},
}

func koordinatorGang(mode string) dialect {
	return dialect{scheduler: "koordinator", target: "job", more: ", waitTimeout: 20s, mode: " + mode}
}

// koordinator16 says of the release that it tries a Strict gang in cycles. Later ones leave pods beyond the minimum
// pending until they are made anew.
func koordinator16(p *place) bool {
	return strings.HasPrefix(strings.TrimPrefix(p.version(p.program), "v"), "1.6")
}

// woken runs a scenario while PodGroups come and go. Of a gang whose last pod comes into its queue before it has
// counted it, Koordinator 1.6 tries none for five minutes, unless somebody makes a PodGroup, of whatever gang.
func woken(run func(*place)) func(*place) {
	return func(p *place) {
		if !koordinator16(p) {
			run(p)
			return
		}
		group := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"name": "other", "namespace": "e2e-other"},
			"spec":     map[string]any{"minMember": int64(1)},
		}}
		p.enter(group.GetNamespace())
		groups, err := p.on(group)
		if err != nil {
			p.Fatal(err)
		}
		ctx, stop := context.WithCancel(p.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := groups.Create(ctx, group, metav1.CreateOptions{})
				if err == nil {
					err = groups.Delete(ctx, group.GetName(), metav1.DeleteOptions{})
				}
				if err != nil && ctx.Err() == nil {
					p.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
		defer wg.Wait()
		defer stop()
		run(p)
	}
}

// koordinatorElastic: with room for all of four workers, of which two are enough, all run in the end.
func koordinatorElastic(p *place) {
	p.nodes(1, 4, "")
	objects := p.golden("gang-elastic")
	p.apply(objects...)
	namespace := p.the("Job", objects).GetNamespace()
	if !koordinator16(p) {
		p.eventually("the minimum", func() error { return p.atLeastRun(2, namespace) })
		p.anew(namespace)
	}
	p.running(4, namespace, workers)
}

// koordinatorAtLeast: with two accelerators two of four workers run where two are enough; with two more all do, or one
// is left until it is made anew.
func koordinatorAtLeast(mode string) func(*place) {
	return func(p *place) {
		d := koordinatorGang(mode)
		d.two(p)
		d.give(p, 2)
		if !koordinator16(p) {
			p.running(3, p.namespace, workers)
			p.remains("one is left", func() error { return p.placed(p.namespace, 3) })
			p.anew(p.namespace)
		}
		p.running(4, p.namespace, workers)
	}
}

// atLeastRun checks that so many workers run.
func (p *place) atLeastRun(want int, namespace string) error {
	pods, err := p.pods(namespace, workers)
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning {
			want--
		}
	}
	if err == nil && want > 0 {
		err = fmt.Errorf("%d fewer of %d pods run", want, len(pods))
	}
	return err
}

// anew deletes the workers that no node has, so that others come in their place.
func (p *place) anew(namespace string) {
	p.Helper()
	pods, err := p.pods(namespace, workers)
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		p.Logf("%s is left pending", pod.Name)
		if err := p.client.CoreV1().Pods(namespace).Delete(p.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// koordinatorGroup: two jobs of one group have room for both or do not run, although one of them has.
func koordinatorGroup(p *place) {
	groups := fmt.Sprintf(", groups: [%s/first, %[1]s/second]", p.namespace)
	d := koordinatorGang("Strict")
	d.more += groups
	d.give(p, 6)
	p.apply(append(d.job(p, "first", 4), d.job(p, "second", 4)...)...)
	p.remains("nothing runs", func() error { return p.placed(p.namespace, 0) })
	d.give(p, 2)
	p.running(8, p.namespace, workers)
}

// koordinatorHolds: where there is not enough for a NonStrict gang, another for which it would be enough has it from
// 1.8 on. Until 1.6 neither runs, however short waitTimeout is, until there is enough for both.
func koordinatorHolds(p *place) {
	d := koordinatorGang("NonStrict")
	if !koordinator16(p) {
		d.letsGo(p)
		return
	}
	d.give(p, 2)
	p.apply(d.job(p, "whole", 4)...)
	p.remains("nothing runs", func() error { return p.placed(p.namespace, 0) })
	p.apply(d.job(p, "half", 2)...)
	for began := time.Now(); time.Since(began) < 30*time.Second; { // longer than waitTimeout
		p.remains("nothing runs", func() error { return p.placed(p.namespace, 0) })
	}
	d.give(p, 4)
	p.eventually("that of two", func() error { return p.atLeastRun(2, p.namespace) })
}
