package apis

// podDefaults are what the API server makes of fields of a pod that nobody wrote, as JSON, by path below the pod's spec
// (kubernetes 1.36, pkg/apis/core/v1 SetDefaults_*; what is false or empty here is never stored). Only what it sets
// whatever the rest of the object is.
var podDefaults = map[string]string{
	"dnsPolicy": `"ClusterFirst"`, "restartPolicy": `"Always"`, "schedulerName": `"default-scheduler"`,
	"terminationGracePeriodSeconds": `30`, "securityContext": `{}`,
	"hostNetwork": `false`, "hostPID": `false`, "hostIPC": `false`,
	"volumes[].emptyDir.medium": `""`, "volumes[].hostPath.type": `""`, "volumes[].secret.defaultMode": `420`,
	"volumes[].configMap.defaultMode": `420`, "volumes[].projected.defaultMode": `420`,
	"volumes[].persistentVolumeClaim.readOnly": `false`,
}

// containerDefaults are those below a container.
var containerDefaults = map[string]string{
	"terminationMessagePath": `"/dev/termination-log"`, "terminationMessagePolicy": `"File"`, "resources": `{}`,
	"stdin": `false`, "stdinOnce": `false`, "tty": `false`, "env[].value": `""`,
	"env[].valueFrom.fieldRef.apiVersion": `"v1"`, "ports[].protocol": `"TCP"`, "volumeMounts[].readOnly": `false`,
}

// Defaults are what the API server makes of fields that nobody wrote, as JSON, by kind, such as Job.batch, and by path,
// with [] for every item of a list. What is false or empty is never stored.
var Defaults = func() map[string]map[string]string {
	all := map[string]map[string]string{
		"Job.batch": {
			"spec.suspend":        `false`,
			"spec.backoffLimit":   `6`,
			"spec.completionMode": `"NonIndexed"`,
		},
		"Deployment.apps": {
			"spec.replicas":                `1`,
			"spec.revisionHistoryLimit":    `10`,
			"spec.progressDeadlineSeconds": `600`,
		},
		"StatefulSet.apps": {
			"spec.replicas":             `1`,
			"spec.revisionHistoryLimit": `10`,
			"spec.podManagementPolicy":  `"OrderedReady"`,
		},
		"DaemonSet.apps": {"spec.revisionHistoryLimit": `10`},
		"CronJob.batch":  {},
		"Pod":            {"spec.enableServiceLinks": `true`}, // and of no template
		"Secret":         {"type": `"Opaque"`},
		"Service": {
			"spec.type":                     `"ClusterIP"`,
			"spec.sessionAffinity":          `"None"`,
			"spec.ports[].protocol":         `"TCP"`,
			"spec.publishNotReadyAddresses": `false`,
		},
		"PersistentVolumeClaim": {"spec.volumeMode": `"Filesystem"`},
		"PersistentVolume": {
			"spec.volumeMode":                    `"Filesystem"`,
			"spec.persistentVolumeReclaimPolicy": `"Retain"`,
		},
		"StorageClass.storage.k8s.io": {"reclaimPolicy": `"Delete"`, "volumeBindingMode": `"Immediate"`},
	}
	for kind, below := range map[string]string{
		"Job.batch": "spec.template.spec.", "Deployment.apps": "spec.template.spec.",
		"StatefulSet.apps": "spec.template.spec.", "DaemonSet.apps": "spec.template.spec.", "Pod": "spec.",
		"CronJob.batch": "spec.jobTemplate.spec.template.spec.",
	} {
		for path, value := range podDefaults {
			all[kind][below+path] = value
		}
		for path, value := range containerDefaults {
			all[kind][below+"containers[]."+path], all[kind][below+"initContainers[]."+path] = value, value
		}
	}
	return all
}()
