package schema

import "fmt"

// worker is what a job's escape hatch calls the workers' container, and most targets too.
const worker = "worker"

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
func (s *Spec) Container() string {
	if name, ok := containers[[2]string{s.Framework, s.Target}]; ok {
		return name
	}
	return worker
}

// containerNames refuses a second container of the worker's name: the names of a pod's containers are unique.
func (r *ruling) containerNames() {
	name, spec := r.Spec.Container(), r.patch().Spec
	for i, c := range spec.Containers {
		if c.Name == name && name != worker {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].name", i), "reserved", "%s is what target %s calls the workers' container: name it worker to change that one, or choose another name", name, r.Spec.Target)
		}
	}
	for i, c := range spec.InitContainers {
		if c.Name == name {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.initContainers[%d].name", i), "reserved", "%s is what target %s calls the workers' container: choose another name", name, r.Spec.Target)
		}
	}
}
