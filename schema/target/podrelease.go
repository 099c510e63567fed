package target

import (
	"encoding/json"

	"github.com/tegen-dev/tegen/schema/job"
)

// PodRelease is the release of Kubernetes with whose types a controller was built: it decodes a template with them, and
// loses every field that came later.
type PodRelease struct {
	Version                 string
	Pod, Container          string // the fields that they had
	PodContext, ContContext string // and those of securityContext
}

const (
	pod17 = "volumes initContainers containers restartPolicy terminationGracePeriodSeconds " +
		"activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken " +
		"nodeName hostNetwork hostPID hostIPC securityContext imagePullSecrets hostname subdomain affinity " +
		"schedulerName tolerations hostAliases"
	container17 = "name image command args workingDir ports envFrom env resources volumeMounts livenessProbe " +
		"readinessProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext " +
		"stdin stdinOnce tty"

	podContext17  = "seLinuxOptions runAsUser runAsNonRoot supplementalGroups fsGroup"
	contContext17 = "capabilities privileged seLinuxOptions runAsUser runAsNonRoot readOnlyRootFilesystem"
)

// PodReleases are the controllers that are older than fields in use today (kubernetes/kubernetes, pkg/api/v1/types.go
// in release-1.7; kubernetes/api, core/v1/types.go in kubernetes-1.15.0).
var PodReleases = map[[2]string]PodRelease{
	{job.FrameworkMXNet, job.TargetMXJobMlkube}: {"1.7", pod17, container17, podContext17, contContext17},
	{job.FrameworkTorchelastic, job.TargetElasticJob}: {
		"1.15",
		pod17 + " priorityClassName priority dnsConfig shareProcessNamespace readinessGates runtimeClassName " +
			"enableServiceLinks preemptionPolicy",
		container17 + " volumeDevices",
		podContext17 + " runAsGroup sysctls windowsOptions",
		contContext17 + " runAsGroup allowPrivilegeEscalation procMount windowsOptions",
	},
}

// FieldsOf are the fields of a JSON object, nil of anything else.
func FieldsOf(raw json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}
