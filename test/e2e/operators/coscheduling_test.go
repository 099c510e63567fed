package operators

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
	},
}

func coschedulingGang(target string) dialect {
	return dialect{scheduler: "coscheduling", target: target, more: ", waitTimeout: 20s"}
}
