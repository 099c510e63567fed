package operators

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mpiGangs are what the MPI operator knows of the two schedulers that it makes PodGroups for.
var mpiGangs = map[string]struct {
	golden, scheduler string
	group             schema.GroupVersionKind
	member            func(corev1.Pod) string // the PodGroup that a pod is in
	spec              map[string]any          // of the golden file's PodGroup, in part
	workers           int
}{
	"coscheduling": {
		"mpijob-gang-coscheduling", "scheduler-plugins-scheduler",
		schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"},
		func(p corev1.Pod) string { return p.Labels["scheduling.x-k8s.io/pod-group"] },
		map[string]any{"minMember": int64(5), "scheduleTimeoutSeconds": int64(600)},
		4,
	},
	"volcano": {
		"horovod-mpijob-full", "volcano",
		schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"},
		func(p corev1.Pod) string { return p.Annotations["scheduling.k8s.io/group-name"] },
		map[string]any{"minMember": int64(4), "queue": "research", "priorityClassName": "batch"},
		3,
	},
}

// mpiGang: launcher and workers are made at once, for the launcher is of the gang. An operator that was started for the
// gang's scheduler makes its PodGroup and puts every pod into it. One that was started for none makes no PodGroup, and
// one that was started for another takes the pods to that, which is why tegen says what it has to be started with.
func mpiGang(p *place) {
	p.priority("batch", 1000)
	p.apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "nvidia"},
		"handler": "nvidia",
	}})
	for _, g := range mpiGangs {
		objects := p.golden(g.golden)
		p.apply(objects...)
		job := p.the("MPIJob", objects)
		p.eventually("all pods", func() error { return mpiPods(p, job, 1, g.workers) })
		groups, started := map[string]int{}, ""
		for _, pod := range append(mpiOf(p, job, launchers), mpiOf(p, job, workers)...) {
			groups[g.member(pod)]++
			for _, of := range mpiGangs {
				if of.member(pod) != "" {
					started = of.scheduler
				}
			}
			if want := cmp.Or(started, g.scheduler); pod.Spec.SchedulerName != want {
				p.Errorf("pod %s is for the scheduler %s, want %s", pod.Name, pod.Spec.SchedulerName, want)
			}
		}
		p.Logf("%s under an operator that was started for the gangs of %q", g.golden, started)
		if started == g.scheduler {
			p.eventually("the PodGroup", func() error { return mpiGroup(p, g.group, job, g.spec) })
			if groups[job.GetName()] != g.workers+1 {
				p.Errorf("pods by their gang are %v, want all in %s", groups, job.GetName())
			}
		} else if len(groups) != 1 || groups[""] != g.workers+1 {
			p.Errorf("pods by their gang are %v, and there is nobody to make one", groups)
		}
		p.imported(objects, job)
		p.delete(p.Context(), objects...)
		p.gone(job.GetNamespace())
	}
}

// mpiGroup checks the PodGroup of a job.
func mpiGroup(p *place, of schema.GroupVersionKind, job *unstructured.Unstructured, want map[string]any) error {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(of)
	group.SetNamespace(job.GetNamespace())
	group.SetName(job.GetName())
	live, err := p.get(p.Context(), group)
	if err != nil {
		return err
	}
	for field, value := range want {
		if got, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", field); got != value {
			return fmt.Errorf("its %s is %v, want %v", field, got, value)
		}
	}
	return nil
}

// mpiPlaced tries gangs of MPIJobs under the scheduler that the operator was started for: launcher and workers are one.
func mpiPlaced(try func(dialect, *place)) func(*place) {
	return func(p *place) {
		p.nodes(1, 0, "") // for launchers, which are kept from the workers' nodes by their taint
		const extra = "  framework: horovod\n"
		for _, d := range []dialect{
			{scheduler: "coscheduling", target: "mpijob", more: ", waitTimeout: 20s", extra: extra},
			{scheduler: "volcano", target: "mpijob", extra: extra},
		} {
			objects := d.job(p, "which", 4)
			p.apply(objects...)
			job := p.the("MPIJob", objects)
			p.eventually("its pods", func() error { return mpiPods(p, job, 1, 4) })
			pod := mpiOf(p, job, workers)[0]
			p.delete(p.Context(), objects...)
			p.gone(p.namespace)
			if g := mpiGangs[d.scheduler]; g.member(pod) != "" {
				p.Logf("under %s", d.scheduler)
				try(d, p)
				return
			}
		}
		p.Skip("the operator was started without --gang-scheduling")
	}
}
