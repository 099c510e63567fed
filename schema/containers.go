package schema

import "fmt"

// containers are the names that controllers look for, by framework and target.
var containers = map[[2]string]string{
	{FrameworkTorchelastic, TargetTrainJob}:   "node",
	{FrameworkTorchelastic, TargetElasticJob}: "elasticjob-worker", // pytorch/elastic, kubernetes/api/v1alpha1/constants.go
	{FrameworkTorchelastic, TargetPyTorchJob}: "pytorch",
	{FrameworkDLRover, TargetElasticJob}:      "main", // which the master sets up where a pod has several
	{FrameworkMXNet, TargetMXJob}:             "mxnet",
	{FrameworkMXNet, TargetMXJobMlkube}:       "mxnet",
}

// Container is what the target calls the container of a worker.
func (s *Spec) Container() string { return s.ContainerOf(RoleWorker) }

// ContainerOf is what a role's own container is called in the end.
func (s *Spec) ContainerOf(role string) string {
	name, named := containers[[2]string{s.Framework, s.Target}]
	switch {
	case role == RoleCompanion:
		return "rendezvous"
	case named && (role == RoleWorker || s.Framework == FrameworkMXNet && Trains(role)): // whose operators know one name for all roles
		return name
	}
	return role
}

// containerNames refuses a second container of the worker's name: the names of a pod's containers are unique.
func (r *ruling) containerNames() {
	for _, p := range r.patches() {
		name, whose := r.Spec.ContainerOf(p.role), "the "+p.role+"'s container"
		if p.role == RoleWorker {
			whose = "the workers' container"
		}
		for i, c := range p.Spec.Containers {
			if c.Name == name && name != p.role {
				r.fail(fmt.Sprintf("%s.spec.containers[%d].name", p.at, i), "reserved", "%s is what target %s calls %s: name it %s to change that one, or choose another name", name, r.Spec.Target, whose, p.role)
			}
		}
		for i, c := range p.Spec.InitContainers {
			if c.Name == name {
				r.fail(fmt.Sprintf("%s.spec.initContainers[%d].name", p.at, i), "reserved", "%s is what target %s calls %s: choose another name", name, r.Spec.Target, whose)
			}
		}
	}
}
