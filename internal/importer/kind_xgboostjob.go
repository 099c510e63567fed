package importer

import (
	"fmt"
	"strings"
)

// xgboostPort is the port of the name by which XGBoostJob's controller tells pods of each other, and its default
// (kubeflow/training-operator v1.9, pkg/apis/kubeflow.org/v1/xgboost_types.go).
const xgboostPort, xgboostDefaultPort = "xgboostjob-port", "9999"

// xgboost reads an XGBoostJob as a PyTorchJob with a Master: to both, the operator tells MASTER_ADDR, MASTER_PORT,
// WORLD_SIZE and RANK, the Master being rank 0. What it tells XGBoostJob's pods beside are their own variables here
// (kubeflow/training-operator v1.9, pkg/controller.v1/xgboost/xgboost.go).
func (s *stream) xgboost(o *object) *object {
	roles, _ := clone(o.view().at("spec", "xgbReplicaSpecs").value).(tree)
	if roles["Master"] == nil {
		return nil
	}
	var addresses []string
	port := xgboostDefaultPort
	for _, name := range []string{"Master", "Worker"} {
		role := view{value: roles[name]}
		setMissing(role.mapping(), tree{"restartPolicy": "Never"}) // of a PyTorchJob it would be OnFailure
		if name == "Worker" && role.isSet() {
			n, ok := role.at("replicas").number()
			if !ok {
				n = 1
			}
			for i := range min(n, mostAddresses) {
				addresses = append(addresses, fmt.Sprintf("%s-worker-%d", o.name, i))
			}
			own := trainingContainer(role.at("template", "spec")).at("ports").item("name", xgboostPort)
			if own.isSet() {
				port = own.at("containerPort").text()
			}
		}
	}
	if len(addresses) > 0 {
		for _, name := range []string{"Master", "Worker"} {
			c := trainingContainer(view{value: roles[name]}.at("template", "spec"))
			for _, own := range [][2]string{{"WORKER_PORT", port}, {"WORKER_ADDRS", strings.Join(addresses, ",")}} {
				if !c.at("env").item("name", own[0]).isSet() && c.mapping() != nil {
					c.mapping()["env"] = append(listOf(c.at("env").value), tree{"name": own[0], "value": own[1]})
				}
			}
		}
	}
	spec := tree{"pytorchReplicaSpecs": roles}
	if policy := o.view().at("spec", "runPolicy"); policy.isSet() {
		spec["runPolicy"] = clone(policy.value)
	}
	s.notes = append(s.notes, o.note(Translated,
		"it becomes a PyTorchJob, whose pods the same operator tells MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK; "+
			"WORKER_PORT and WORKER_ADDRS become variables of the job, for %d workers", len(addresses)))
	return o.reform("kubeflow.org/v1", "PyTorchJob", spec, []place{
		{[]string{"spec", "pytorchReplicaSpecs"}, []string{"spec", "xgbReplicaSpecs"}},
	})
}

// mostAddresses is how many workers have their names listed; more than that is a mistake in their number.
const mostAddresses = 1000
