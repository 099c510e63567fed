package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// podRelease is the release of Kubernetes with whose types a controller was built: it decodes a template with them, and
// loses every field that came later.
type podRelease struct {
	version                 string
	pod, container          string // the fields that they had
	podContext, contContext string // and those of securityContext
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

// podReleases are the controllers that are older than fields in use today (kubernetes/kubernetes, pkg/api/v1/types.go
// in release-1.7; kubernetes/api, core/v1/types.go in kubernetes-1.15.0).
var podReleases = map[[2]string]podRelease{
	{FrameworkMXNet, TargetMXJobMlkube}: {"1.7", pod17, container17, podContext17, contContext17},
	{FrameworkTorchelastic, TargetElasticJob}: {
		"1.15",
		pod17 + " priorityClassName priority dnsConfig shareProcessNamespace readinessGates runtimeClassName " +
			"enableServiceLinks preemptionPolicy",
		container17 + " volumeDevices",
		podContext17 + " runAsGroup sysctls windowsOptions",
		contContext17 + " runAsGroup allowPrivilegeEscalation procMount windowsOptions",
	},
}

// podFields refuses fields of the escape hatch that the target's controller would lose.
func (r *validation) podFields() {
	release, old := podReleases[[2]string{r.Spec.Framework, r.Spec.Target}]
	for _, p := range r.patches() {
		if old && Trains(p.role) { // the others' pods are made by no controller of the target's
			r.lostOf(p, release)
		}
	}
}

func (r *validation) lostOf(p patch, release podRelease) {
	var patch struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(p.raw, &patch) != nil { // podTemplate says what is wrong
		return
	}
	at := p.at + ".spec"
	r.lost(at, patch.Spec, release.pod, release.version)
	r.lost(at+".securityContext", fieldsOf(patch.Spec["securityContext"]), release.podContext, release.version)
	for _, list := range []string{"containers", "initContainers"} {
		var containers []map[string]json.RawMessage
		if json.Unmarshal(patch.Spec[list], &containers) != nil {
			continue
		}
		for i, c := range containers {
			item := fmt.Sprintf("%s.%s[%d]", at, list, i)
			r.lost(item, c, release.container, release.version)
			r.lost(item+".securityContext", fieldsOf(c["securityContext"]), release.contContext, release.version)
		}
	}
}

func fieldsOf(raw json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func (r *validation) lost(at string, fields map[string]json.RawMessage, known, version string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(strings.Fields(known), name) {
			r.fail(at+"."+name, "target",
				"target %s of framework %s cannot carry this: its controller makes pods of Kubernetes %s, which had "+
					"no such field", r.Spec.Target, r.Spec.Framework, version)
		}
	}
}
