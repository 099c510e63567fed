package operators

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/apis"
)

// kubernetesGangs are the gangs of Kubernetes itself, of the release that serves v1alpha2 of them.
var kubernetesGangs = program{
	name: "Kubernetes' own gangs", kinds: []string{"PodGroup", "Workload"},
	definitions: []string{"podgroups.scheduling.k8s.io/v1alpha2", "workloads.scheduling.k8s.io/v1alpha2"},
	log:         "kube-scheduler", controller: "component=kube-scheduler",
	probe: func(p *place) {
		p.nodes(2, 8, "")
		objects := p.golden("gang-kubernetes-1-36")
		p.apply(objects...)
		p.running(2, p.the("PodGroup", objects).GetNamespace(), workers)
		p.condition(p.the("PodGroup", objects), "PodGroupScheduled")
	},
	scenarios: []scenario{
		{"job, min 4 of 4", ownGang("job").allOrNone},
		{"pods, min 4 of 4", ownGang("pods").allOrNone},
		{"job, min 2 of 4", ownGang("job").atLeast},
		{"job, two contend", ownGang("job").contend},
		{"job lets go", ownGang("job").letsGo},
		{"job, one is lost", ownGang("job").mends},
		{"job, another number is refused", fixedNumber},
		{"job, topology", ownTopology},
		{"jobset, min 4 of 4", func(p *place) { p.needs(jobSet); ownGang("jobset").allOrNone(p) }},
		{"jobset, min 2 of 4", func(p *place) { p.needs(jobSet); ownGang("jobset").atLeast(p) }},
		{"jobset, two contend", func(p *place) { p.needs(jobSet); ownGang("jobset").contend(p) }},
		{"gang-jobset-kubernetes", ownGolden("gang-jobset-kubernetes", jobSet)},
		{"gang-trainjob-kubernetes", ownGolden("gang-trainjob-kubernetes", trainer)},
	},
}

func ownGang(target string) dialect {
	return dialect{scheduler: "kubernetes", target: target, extra: "  kubernetesVersion: \"1.36\"\n"}
}

// ownTopology needs a feature gate of its own, without which the API server refuses the PodGroup.
func ownTopology(p *place) {
	t := topologies{dialect: ownGang("job"), prepare: func(*place, ...string) {}}
	group := p.the("PodGroup", t.asked("").job(p, "probe", 4))
	p.enter(p.namespace)
	if err := p.applyOne(group); err != nil && strings.Contains(err.Error(), "schedulingConstraints") {
		p.Skipf("needs the feature gate TopologyAwareWorkloadScheduling: %v", err)
	}
	t.required(p)
}

// ownGolden: the pods of a custom resource's controller are in the gang.
func ownGolden(name string, controller program) func(*place) {
	return func(p *place) {
		p.needs(controller)
		objects := p.whole(name, 0, 4, workers)
		group := p.the("PodGroup", objects)
		p.condition(group, "PodGroupScheduled")
		p.oneGroup(apis.PodGroupAlphaKind, group.GetNamespace(), group.GetName(), nil, "")
	}
}

// fixedNumber: the API server refuses another number of workers, of a Job and of the gang.
func fixedNumber(p *place) {
	d := ownGang("job")
	d.give(p, 4)
	objects := d.job(p, "gang", 2)
	p.apply(objects...)
	p.running(4, p.namespace, workers)
	refused := func(kind, want string, path ...string) {
		err := p.trySet(p.the(kind, objects), int64(3), path...)
		if err == nil || !strings.Contains(err.Error(), want) {
			p.Errorf("setting %s of a %s to 3: got %v, want an error with %q", strings.Join(path, "."), kind, err, want)
		}
	}
	refused("Job", "cannot change parallelism for a Job referencing gang-scheduled PodGroup", "spec", "parallelism")
	refused("PodGroup", "immutable", "spec", "schedulingPolicy", "gang", "minCount")
}
