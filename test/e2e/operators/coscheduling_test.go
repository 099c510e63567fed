package operators

import (
	"github.com/tegen-dev/tegen/internal/apis"
)

var coscheduling = program{
	name: "scheduler-plugins, as a second scheduler", kinds: []string{"PodGroup"},
	definitions: []string{"podgroups.scheduling.x-k8s.io/v1alpha1"},
	log:         "coscheduling", controller: "component=scheduler",
	probe: func(p *place) {
		p.nodes(1, 4, "")
		p.priority("batch", 1000)
		objects := p.golden("gang-coscheduling")
		p.apply(objects...)
		p.running(4, p.the("Job", objects).GetNamespace(), workers)
	},
	scenarios: []scenario{
		{"min 4 of 4", coschedulingGang("job").allOrNone},
		{"min 2 of 4", coschedulingGang("job").atLeast},
		{"two contend", coschedulingGang("job").contend},
		{"lets go", coschedulingGang("job").letsGo},
		{"one is lost", coschedulingGang("job").mends},
		{"other numbers of workers", coschedulingGang("job").scales},
		{"gang-jobset-coscheduling", func(p *place) {
			p.needs(jobSet)
			objects := p.whole("gang-jobset-coscheduling", 0, 4, workers)
			p.coscheduled(p.the("JobSet", objects).GetNamespace(), "set-cosched", 4, 600)
		}},
		{"jobset, min 2 of 4", coscheduledTarget("jobset", jobSet, 2)},
		{"pytorchjob, min 4 of 4", coscheduledTarget("pytorchjob", trainingOperator, 4)},
		{"pytorchjob, min 2 of 4", coscheduledTarget("pytorchjob", trainingOperator, 2)},
		{"trainjob, min 4 of 4", coscheduledTarget("trainjob", trainer, 4)},
		{"mpijob-gang-coscheduling", coscheduledMPI},
	},
}

func coschedulingGang(target string) dialect {
	return dialect{scheduler: "coscheduling", target: target, more: ", waitTimeout: 20s"}
}

// coscheduled: there is one PodGroup, and all pods are in it.
func (p *place) coscheduled(namespace, name string, least, timeout int64) {
	p.Helper()
	p.oneGroup(apis.CoschedulingPodGroupKind, namespace, name,
		map[string]any{"minMember": least, "scheduleTimeoutSeconds": timeout}, "scheduling.x-k8s.io/pod-group")
}

// coscheduledTarget: the pods of a controller are a gang, of one PodGroup, whoever makes it.
func coscheduledTarget(target string, controller program, least int) func(*place) {
	return func(p *place) {
		p.needs(controller)
		d := coschedulingGang(target)
		if least == 4 {
			d.allOrNone(p)
		} else {
			d.atLeast(p)
		}
		p.coscheduled(p.namespace, "gang", int64(least), 20)
	}
}

// coscheduledMPI: launcher and workers are one gang, where the operator was started to make its PodGroup.
func coscheduledMPI(p *place) {
	p.needs(mpiOperator)
	objects := p.whole("mpijob-gang-coscheduling", 0, 5, "")
	namespace := p.the("MPIJob", objects).GetNamespace()
	if len(p.list(apis.CoschedulingPodGroupKind, namespace)) == 0 {
		p.Skip("the operator makes no PodGroup: it was started without --gang-scheduling=scheduler-plugins-scheduler")
	}
	p.coscheduled(namespace, "hvd-cosched", 5, 600)
}
