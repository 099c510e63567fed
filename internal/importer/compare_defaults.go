package importer

import (
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
)

// applyDefaults adds to an object the defaults of an API server, as far as they are known without one.
func applyDefaults(object tree) {
	v := view{value: object}
	switch apischema.FromAPIVersionAndKind(v.at("apiVersion").text(), v.at("kind").text()).GroupKind() {
	case apischema.GroupKind{Kind: "Service"}:
		setMissing(v.at("spec").mapping(), tree{
			"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
			"ipFamilyPolicy": "SingleStack",
		})
		for _, p := range v.at("spec", "ports").items() {
			setMissing(p.mapping(), tree{"protocol": "TCP", "targetPort": p.at("port").value})
		}
	case batchJobKind:
		if !v.at("spec", "parallelism").isSet() {
			setMissing(v.at("spec").mapping(), tree{"completions": int64(1)})
		}
		setMissing(v.at("spec").mapping(), tree{
			"backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false,
			"parallelism": int64(1), "manualSelector": false,
			"podReplacementPolicy": "TerminatingOrFailed",
		})
	case apis.PyTorchJobKind.GroupKind(), apis.MPIJobKind.GroupKind(), apis.MXJobKind.GroupKind():
		setMissing(v.at("spec").mapping(), tree{"runPolicy": tree{}})
		if v.at("kind").text() == apis.MPIJobKind.Kind {
			defaultMPIJob(v.at("spec"))
		}
		setMissing(v.at("spec", "runPolicy").mapping(), tree{"cleanPodPolicy": "None", "suspend": false})
	case apis.TrainJobKind.GroupKind():
		setMissing(v.at("spec").mapping(), tree{
			"managedBy": "trainer.kubeflow.org/trainjob-controller", "suspend": false,
		})
	case apis.TrainingRuntimeKind.GroupKind():
		for _, job := range v.at("spec", "template", "spec", "replicatedJobs").items() {
			setMissing(job.mapping(), tree{"groupName": "default", "replicas": int64(1)})
			defaultRestart(job)
		}
	case apis.JobSetKind.GroupKind():
		setMissing(v.at("spec").mapping(), tree{"suspend": false, "startupPolicy": tree{}, "successPolicy": tree{}})
		setMissing(v.at("spec", "startupPolicy").mapping(), tree{"startupPolicyOrder": "AnyOrder"})
		setMissing(v.at("spec", "successPolicy").mapping(), tree{"operator": "All"})
		for _, child := range v.at("spec", "replicatedJobs").items() {
			setMissing(child.mapping(), tree{"groupName": "default"})
			defaultRestart(child)
		}
	case apis.TorchElasticJobKind.GroupKind():
		setMissing(v.at("spec").mapping(), tree{"RunPolicy": tree{}})
		setMissing(v.at("spec", "RunPolicy").mapping(), tree{"cleanPodPolicy": "None"})
		// Its controller drops them from the pods, and writes the whole job without them.
		setMissing(v.at("spec", "replicaSpecs", "Worker", "template", "spec", "securityContext").mapping(), tree{
			"fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": tree{"type": "RuntimeDefault"},
		})
	case apis.VCJobKind.GroupKind():
		defaultVCJob(v.at("spec"))
	case apis.PodGroupAlphaKind.GroupKind():
		setMissing(v.at("spec").mapping(), tree{"disruptionMode": "Pod"})
	case apischema.GroupKind{Kind: "PersistentVolumeClaim"}, apischema.GroupKind{Kind: "PersistentVolume"}:
		setMissing(v.at("spec").mapping(), tree{"volumeMode": "Filesystem"})
	case apischema.GroupKind{Kind: "ServiceAccount"}:
		setMissing(object, tree{"automountServiceAccountToken": true})
	}
	defaultPods(object)
}

// defaultRestart is the default of JobSet's webhook.
func defaultRestart(child view) {
	setMissing(child.at("template", "spec", "template", "spec").mapping(), tree{"restartPolicy": "OnFailure"})
}

// defaultVCJob adds what Volcano's webhook does, and what its controller gives the pods of the job.
func defaultVCJob(spec view) {
	setMissing(spec.mapping(), tree{"queue": volcanoDefaultQueue, "schedulerName": "volcano", "maxRetry": int64(3)})
	least := int64(0)
	for _, task := range spec.at("tasks").items() {
		setMissing(task.mapping(), tree{"maxRetry": int64(3), "minAvailable": task.at("replicas").value})
		setMissing(task.at("template", "spec").mapping(), tree{
			"schedulerName":     spec.at("schedulerName").value,
			"priorityClassName": spec.at("priorityClassName").value,
		})
		n, _ := task.at("minAvailable").number()
		least += n
	}
	setMissing(spec.mapping(), tree{"minAvailable": least})
}

// defaultMPIJob adds what the operator does (pkg/apis/kubeflow/v2beta1/default.go of v0.8.0).
func defaultMPIJob(spec view) {
	setMissing(spec.mapping(), tree{
		"mpiImplementation": "OpenMPI", "runLauncherAsWorker": false, "slotsPerWorker": int64(1),
		"sshAuthMountPath": "/root/.ssh", "launcherCreationPolicy": "AtStartup",
	})
	setMissing(spec.at("mpiReplicaSpecs", apis.MPILauncher).mapping(), tree{
		"replicas": int64(1), "restartPolicy": "OnFailure",
	})
	setMissing(spec.at("mpiReplicaSpecs", apis.MPIWorker).mapping(), tree{"restartPolicy": "Never"})
}

// setMissing sets what is not there.
func setMissing(object, values tree) {
	if object == nil {
		return
	}
	for key, value := range values {
		if object[key] == nil && value != nil {
			object[key] = value
		}
	}
}

func defaultPods(value any) {
	switch x := value.(type) {
	case tree:
		if _, isPod := x["containers"].([]any); isPod {
			defaultPod(x)
			return
		}
		for _, child := range x {
			defaultPods(child)
		}
	case []any:
		for _, child := range x {
			defaultPods(child)
		}
	}
}

func defaultPod(pod tree) {
	setMissing(pod, tree{
		"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
		"terminationGracePeriodSeconds": int64(30), "enableServiceLinks": true,
		"automountServiceAccountToken": true, "hostNetwork": false, "hostPID": false, "hostIPC": false,
	})
	accountName(pod)
	setMissing(pod, tree{"serviceAccountName": "default"})
	v := view{value: pod}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range v.at(list).items() {
			defaultContainer(c)
		}
	}
	for _, volume := range v.at("volumes").items() {
		for _, kind := range []string{"secret", "configMap", "projected", "downwardAPI"} {
			setMissing(volume.at(kind).mapping(), tree{"defaultMode": int64(0o644)})
		}
	}
}

func defaultContainer(c view) {
	if c.mapping() == nil {
		return
	}
	policy := "IfNotPresent"
	image := c.at("image").text()
	if tag := image[strings.LastIndex(image, "/")+1:]; !strings.ContainsAny(tag, ":@") ||
		strings.HasSuffix(tag, ":latest") {
		policy = "Always"
	}
	setMissing(c.mapping(), tree{
		"imagePullPolicy": policy, "terminationMessagePath": "/dev/termination-log",
		"terminationMessagePolicy": "File",
	})
	for _, p := range c.at("ports").items() {
		setMissing(p.mapping(), tree{"protocol": "TCP"})
	}
	if limits := c.at("resources", "limits").mapping(); limits != nil {
		resources := c.at("resources").mapping()
		requests, _ := resources["requests"].(tree)
		if requests == nil {
			requests = tree{}
			resources["requests"] = requests
		}
		setMissing(requests, limits)
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		setMissing(c.at(probe).mapping(), tree{
			"timeoutSeconds": int64(1), "periodSeconds": int64(10),
			"successThreshold": int64(1), "failureThreshold": int64(3),
		})
	}
	for _, e := range c.at("env").items() {
		setMissing(e.at("valueFrom", "fieldRef").mapping(), tree{"apiVersion": "v1"})
	}
	for _, m := range c.at("volumeMounts").items() {
		setMissing(m.mapping(), tree{"readOnly": false})
	}
}

// dropUsualStatus takes the status out of the conditions of pods that a Job's rules ask for where it is True, the API's
// default: a list of rules is compared as a whole.
func dropUsualStatus(value any) {
	switch x := value.(type) {
	case tree:
		for _, condition := range (view{value: x}).at("onPodConditions").items() {
			if condition.at("status").text() == "True" {
				delete(condition.mapping(), "status")
			}
		}
		for _, child := range x {
			dropUsualStatus(child)
		}
	case []any:
		for _, child := range x {
			dropUsualStatus(child)
		}
	}
}
