package importer

import (
	"strconv"
	"strings"
)

// jaxJobPort is the training operator's own (kubeflow/trainer v1.9.4, pkg/apis/kubeflow.org/v1/jax_types.go).
const jaxJobPort = 6666

// jaxJobVariables gives the pods of a JAXJob that became a Job's what the training operator gave them: its programs
// find the coordinator by these names, and not by JAX's own (pkg/controller.v1/jax/envvar.go).
func (s *stream) jaxJobVariables(job *object, role view) {
	c := trainingContainer(job.view().at("spec", "template", "spec"))
	if c.mapping() == nil {
		return
	}
	port := int64(jaxJobPort)
	if n, ok := c.at("ports").item("name", "jaxjob-port").at("containerPort").number(); ok {
		port = n
	}
	name := strings.TrimSuffix(job.name, "-worker") + "-worker"
	env := listOf(c.mapping()["env"])
	for _, v := range [][2]string{
		{"COORDINATOR_ADDRESS", name + "-0." + name},
		{"COORDINATOR_PORT", strconv.FormatInt(port, 10)},
		{"NUM_PROCESSES", "$(JAX_NUM_PROCESSES)"},
		{"PROCESS_ID", "$(JAX_PROCESS_ID)"},
		{"JAX_COORDINATOR_ADDRESS", name + "-0." + name + ":" + strconv.FormatInt(port, 10)},
	} {
		env = append(env, tree{"name": v[0], "value": v[1]})
	}
	c.mapping()["env"] = env
	s.notes = append(s.notes, role.note(Translated,
		"the pods become those of a Job, whose env has the operator's COORDINATOR_ADDRESS, COORDINATOR_PORT, "+
			"NUM_PROCESSES and PROCESS_ID: leave them out where the program reads JAX's own"))
}

// meetsByTFConfig says whether a TFJob has pods that must find each other.
func meetsByTFConfig(o *object) bool {
	roles := o.view().at("spec", "tfReplicaSpecs")
	pods := int64(0)
	for _, name := range sortedKeys(roles.mapping()) {
		n, ok := roles.at(name, "replicas").number()
		if !ok {
			n = 1
		}
		pods += n
	}
	return o.is("kubeflow.org", "TFJob") && pods > 1
}
