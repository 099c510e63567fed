package operators

import "fmt"

// jobSetExclusive: JobSet's controller puts all workers of a set into the rack of its worker 0, and none of another
// set beside them, whatever room there is.
func jobSetExclusive(p *place) {
	p.racks(2, 2)
	d := topologies{dialect: dialect{scheduler: "none", target: "jobset"}}.asked("")
	racks := map[string]bool{}
	for _, name := range []string{"first", "second"} {
		objects := d.sized(p, name, 4, 2)
		p.apply(objects...)
		pods := p.running(2, p.namespace, workers+",tegen.dev/job="+name)
		rack := p.rackOf(pods[0])
		p.inRacks(pods, map[string]int{rack: 2})
		racks[rack] = true
		p.imported(objects, p.the("JobSet", objects))
	}
	if len(racks) != 2 {
		p.Errorf("two sets share the racks %v", racks)
	}
	p.apply(d.sized(p, "third", 4, 2)...)
	p.remains("the third waits", func() error {
		pods, err := p.pods(p.namespace, workers+",tegen.dev/job=third")
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				return fmt.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		return err
	})
}
