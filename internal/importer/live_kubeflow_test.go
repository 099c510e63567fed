package importer_test

import (
	"fmt"
	"strings"
)

// liveTrainJob is a TrainJob that runs, with its runtime and the JobSet that Trainer made, as a cluster has them.
func liveTrainJob(managedBy string) string {
	const jobs = "replicatedJobs: [{groupName: default, name: node, replicas: 1, template: {metadata: {labels: " +
		"{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {backoffLimit: 6, completionMode: Indexed, " +
		"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: node, image: " +
		"'a/b:1', command: [torchrun, a.py]}]}}}}}]"
	items := []string{
		"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: j, namespace: training, " +
			"resourceVersion: '7'}, spec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {" + jobs + "}}}}",
		"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j, namespace: training, " +
			"uid: 26468878-03a1-44dc-8a61-abe78cbe5aa6}, spec: {managedBy: " + managedBy + ", runtimeRef: {apiGroup: " +
			"trainer.kubeflow.org, kind: TrainingRuntime, name: j}, suspend: false, trainer: {numNodes: 1, " +
			"numProcPerNode: 1}}, status: {jobsStatus: [{active: 1, failed: 0, name: node, ready: 1, succeeded: 0, " +
			"suspended: 0}]}}",
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j, namespace: training, " +
			ownedBy("trainer.kubeflow.org/v1alpha1", "TrainJob", "j") + "}, spec: {" + jobs + "}}",
	}
	return "apiVersion: v1\nkind: List\nitems: [" + strings.Join(items, ", ") + "]\n"
}

// liveKubeflowJob is a job of the training operator that runs, with a pod and a Service that it made, as a cluster has
// them.
func liveKubeflowJob(kind, prefix string) string {
	container := map[string]string{"pytorch": "pytorch", "mx": "mxnet"}[prefix]
	role := func(name string) string {
		return name + ": {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: " + container +
			", image: 'a/b:1', command: [python, a.py]}]}}}"
	}
	spec, roles := "", role("Worker")
	if prefix == "mx" {
		spec, roles = "jobMode: MXTrain, ", strings.Join([]string{role("Scheduler"), role("Server"), roles}, ", ")
		roles = strings.ReplaceAll(roles, "OnFailure", "Never")
	}
	owner := ownedBy("kubeflow.org/v1", kind, "j")
	items := []string{
		fmt.Sprintf("{apiVersion: kubeflow.org/v1, kind: %s, metadata: {name: j, namespace: training, uid: "+
			"26468878-03a1-44dc-8a61-abe78cbe5aa6}, spec: {%srunPolicy: {cleanPodPolicy: None, suspend: false}, "+
			"%sReplicaSpecs: {%s}}, status: {conditions: [{type: Running, status: 'True', reason: Running}], "+
			"replicaStatuses: {Worker: {active: 1, selector: 'training.kubeflow.org/job-name=j'}}, startTime: "+
			"'2026-11-23T03:14:39Z'}}", kind, spec, prefix, roles),
		"{apiVersion: v1, kind: Pod, metadata: {name: j-worker-0, namespace: training, labels: " +
			"{training.kubeflow.org/job-name: j, training.kubeflow.org/replica-index: '0', " +
			"training.kubeflow.org/replica-type: worker}, " + owner + "}, spec: {restartPolicy: OnFailure, " +
			"containers: [{name: " + container + ", image: 'a/b:1', command: [python, a.py], env: " +
			"[{name: PYTHONUNBUFFERED, value: '1'}]}]}}",
		"{apiVersion: v1, kind: Service, metadata: {name: j-worker-0, namespace: training, " + owner + "}, spec: " +
			"{clusterIP: None, ports: [{name: port, port: 1}], selector: {training.kubeflow.org/job-name: j}}}",
	}
	return "apiVersion: v1\nkind: List\nitems: [" + strings.Join(items, ", ") + "]\n"
}
