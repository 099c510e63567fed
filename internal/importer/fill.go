package importer

import "strings"

// fill adds to an object what an API server would, as far as it can be told without one.
func fill(object tree) {
	v := view{value: object}
	switch v.at("kind").text() {
	case "Service":
		defaults(v.at("spec").mapping(), tree{"type": "ClusterIP", "sessionAffinity": "None"})
		for _, p := range v.at("spec", "ports").items() {
			defaults(p.mapping(), tree{"protocol": "TCP", "targetPort": p.at("port").value})
		}
	case "Job":
		defaults(v.at("spec").mapping(), tree{
			"backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false, "parallelism": int64(1), "manualSelector": false,
			"podReplacementPolicy": "TerminatingOrFailed",
		})
	case "PyTorchJob", "MPIJob", "MXJob":
		defaults(v.at("spec").mapping(), tree{"runPolicy": tree{}})
		defaults(v.at("spec", "runPolicy").mapping(), tree{"cleanPodPolicy": "None", "suspend": false})
	case "ElasticJob":
		if strings.HasPrefix(v.at("apiVersion").text(), "elastic.pytorch.org/") {
			defaults(v.at("spec").mapping(), tree{"cleanPodPolicy": "None"})
		}
	case "PersistentVolumeClaim", "PersistentVolume":
		defaults(v.at("spec").mapping(), tree{"volumeMode": "Filesystem"})
	case "ServiceAccount":
		defaults(object, tree{"automountServiceAccountToken": true})
	}
	fillPods(object)
}

// defaults sets what is not there.
func defaults(object, values tree) {
	if object == nil {
		return
	}
	for key, value := range values {
		if object[key] == nil && value != nil {
			object[key] = value
		}
	}
}

func fillPods(value any) {
	switch x := value.(type) {
	case tree:
		if _, isPod := x["containers"].([]any); isPod {
			fillPod(x)
			return
		}
		for _, child := range x {
			fillPods(child)
		}
	case []any:
		for _, child := range x {
			fillPods(child)
		}
	}
}

func fillPod(pod tree) {
	defaults(pod, tree{
		"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": int64(30),
		"enableServiceLinks": true, "automountServiceAccountToken": true, "hostNetwork": false, "hostPID": false, "hostIPC": false,
	})
	accountName(pod)
	defaults(pod, tree{"serviceAccountName": "default"})
	v := view{value: pod}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range v.at(list).items() {
			fillContainer(c)
		}
	}
	for _, volume := range v.at("volumes").items() {
		for _, kind := range []string{"secret", "configMap", "projected", "downwardAPI"} {
			defaults(volume.at(kind).mapping(), tree{"defaultMode": int64(0o644)})
		}
	}
	for _, t := range v.at("tolerations").items() {
		defaults(t.mapping(), tree{"operator": "Equal"})
	}
}

func fillContainer(c view) {
	if c.mapping() == nil {
		return
	}
	policy := "IfNotPresent"
	image := c.at("image").text()
	if tag := image[strings.LastIndex(image, "/")+1:]; !strings.ContainsAny(tag, ":@") || strings.HasSuffix(tag, ":latest") {
		policy = "Always"
	}
	defaults(c.mapping(), tree{"imagePullPolicy": policy, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
	for _, p := range c.at("ports").items() {
		defaults(p.mapping(), tree{"protocol": "TCP"})
	}
	if limits := c.at("resources", "limits").mapping(); limits != nil {
		resources := c.at("resources").mapping()
		requests, _ := resources["requests"].(tree)
		if requests == nil {
			requests = tree{}
			resources["requests"] = requests
		}
		defaults(requests, limits)
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		defaults(c.at(probe).mapping(), tree{"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3)})
	}
	for _, e := range c.at("env").items() {
		defaults(e.at("valueFrom", "fieldRef").mapping(), tree{"apiVersion": "v1"})
	}
	for _, m := range c.at("volumeMounts").items() {
		defaults(m.mapping(), tree{"readOnly": false})
	}
}
