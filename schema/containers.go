package schema

import (
	"fmt"
	"slices"
)

// containers are the names that controllers look for, by framework and target.
var containers = map[[2]string]string{
	{FrameworkTorchelastic, TargetTrainJob}: "node",
	{FrameworkJAX, TargetTrainJob}:          "node",
	// pytorch/elastic, kubernetes/api/v1alpha1/constants.go
	{FrameworkTorchelastic, TargetElasticJob}: "elasticjob-worker",
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
	// whose operators know one name for all roles
	case named && (role == RoleWorker || s.Framework == FrameworkMXNet && Trains(role)):
		return name
	}
	return role
}

// The containers of the pods that prepare a job. In their escape hatch, which is one for all of them, each pod's own is
// called helper.
const (
	ContainerFetch    = "fetch"
	ContainerGenerate = "generate"
	ContainerStore    = "store"
)

// takenNames are the names that the containers of a role's pods have already.
func (s *Spec) takenNames(role string) []string {
	if role == RoleHelper {
		return []string{ContainerFetch, ContainerGenerate, ContainerStore}
	}
	return []string{s.ContainerOf(role)}
}

// containerNames refuses a second container of a name: the names of a pod's containers are unique.
func (r *validation) containerNames() {
	for _, p := range r.patches() {
		fail := func(list string, i int, name, remedy string) {
			why := "is the name of the " + p.role + "'s own container"
			switch {
			case p.role == RoleWorker:
				why = "is what target " + r.Spec.Target + " calls the workers' container"
			case Trains(p.role):
				why = "is what target " + r.Spec.Target + " calls the " + p.role + "'s container"
			}
			r.fail(fmt.Sprintf("%s.spec.%s[%d].name", p.at, list, i), "reserved", "%s %s: %schoose another name", name,
				why, remedy)
		}
		taken := r.Spec.takenNames(p.role)
		for i, c := range p.Spec.Containers {
			if slices.Contains(taken, c.Name) && c.Name != p.role {
				fail("containers", i, c.Name, "name it "+p.role+" to change that one, or ")
			}
		}
		for i, c := range p.Spec.InitContainers {
			if slices.Contains(taken, c.Name) {
				fail("initContainers", i, c.Name, "")
			}
		}
	}
}
