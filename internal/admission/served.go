package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// served are fields of pods that an API server writes beside apis.Defaults: in every pod template or, where it says so,
// in pods alone, by its admission plugins and controllers (kubernetes 1.36: pkg/apis/core/v1/defaults.go,
// plugin/pkg/admission, pkg/controller/job). The value is what is set, in JSON; one that starts with + is added to what
// an object has; "" is unknown.
var served = map[string]string{
	"spec.volumes[].emptyDir":                                                  `{}`, // of a volume without a source
	"spec.volumes[].downwardAPI.defaultMode":                                   `420`,
	"spec.volumes[].downwardAPI.items[].fieldRef.apiVersion":                   `"v1"`,
	"spec.volumes[].projected.sources[].serviceAccountToken.expirationSeconds": `3600`,
	"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode":             `"Filesystem"`,
	// by admission
	"spec.serviceAccountName": `"default"`,
	"spec.imagePullSecrets":   ``,
	"spec.tolerations": `+[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
		"tolerationSeconds": 300}]`,
	"spec.priority":          `0`,
	"spec.priorityClassName": ``,
	"spec.preemptionPolicy":  `"PreemptLowerPriority"`,
	"spec.volumes": `+[{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources":
		[{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]`,
	// by controllers
	"spec.nodeSelector":    `+{"node": "a"}`,
	"spec.affinity":        ``,
	"spec.hostname":        ``,
	"spec.subdomain":       ``,
	"spec.schedulingGates": ``,
	"metadata.labels": `+{"batch.kubernetes.io/controller-uid": "0", "batch.kubernetes.io/job-name": "a",
		"controller-uid": "0", "job-name": "a", "pod-template-hash": "0", "controller-revision-hash": "0",
		"jobset.sigs.k8s.io/jobset-name": "a"}`,
	"metadata.annotations":     `+{"batch.kubernetes.io/job-completion-index": "0"}`,
	"metadata.finalizers":      ``,
	"metadata.ownerReferences": ``,
}

// servedInContainers are below each container.
var servedInContainers = map[string]string{
	"imagePullPolicy":                    ``,
	"resources.requests":                 ``, // from the limits
	"ports[].hostPort":                   ``, // with hostNetwork
	"env":                                `+[{"name": "JOB_COMPLETION_INDEX", "valueFrom": {}}]`,
	"volumeMounts":                       `+[{"name": "kube-api-access", "readOnly": true, "mountPath": "/var"}]`,
	"lifecycle.preStop.httpGet.scheme":   `"HTTP"`,
	"lifecycle.postStart.httpGet.scheme": `"HTTP"`,
}

// servedInProbes are below each probe of a container.
var servedInProbes = map[string]string{
	"timeoutSeconds": `1`, "periodSeconds": `10`, "successThreshold": `1`, "failureThreshold": `3`,
	"httpGet.scheme": `"HTTP"`, "httpGet.path": `"/"`, "grpc.service": `""`,
}

// servedAnywhere are fields of the metadata of every object.
var servedAnywhere = []string{
	"creationTimestamp", "generateName", "generation", "managedFields", "name", "namespace", "resourceVersion", "uid",
}

// servedInObjects are below other kinds, by the same sources and pkg/apis/batch/v1/defaults.go.
var servedInObjects = map[string]map[string]string{
	"Service": {
		"spec.ports[].targetPort": ``, "spec.ports[].nodePort": ``, "spec.clusterIP": ``, "spec.clusterIPs": ``,
		"spec.ipFamilies": ``, "spec.ipFamilyPolicy": ``, "spec.internalTrafficPolicy": `"Cluster"`,
		"spec.externalTrafficPolicy": `"Cluster"`, "spec.allocateLoadBalancerNodePorts": `true`,
		"spec.healthCheckNodePort": ``, "spec.sessionAffinityConfig": ``,
	},
	"PersistentVolumeClaim": {"spec.storageClassName": ``, "spec.volumeName": ``},
	"PersistentVolume":      {"spec.claimRef": ``},
	"Job.batch": {
		"spec.parallelism": `1`, "spec.completions": ``, "spec.selector": ``, "spec.podReplacementPolicy": ``,
		"spec.manualSelector": `false`,
	},
	"CronJob.batch": {
		"spec.concurrencyPolicy": `"Allow"`, "spec.suspend": `false`, "spec.successfulJobsHistoryLimit": `3`,
		"spec.failedJobsHistoryLimit": `1`,
	},
	"Deployment.apps":  {"spec.strategy": ``},
	"StatefulSet.apps": {"spec.updateStrategy": ``, "spec.persistentVolumeClaimRetentionPolicy": ``},
	"DaemonSet.apps":   {"spec.updateStrategy": ``},
	"NetworkPolicy.networking.k8s.io": {
		"spec.policyTypes": ``, "spec.ingress[].ports[].protocol": `"TCP"`, "spec.egress[].ports[].protocol": `"TCP"`,
	},
	"ReplicaSet.apps":                              {"spec.replicas": `1`, "spec.selector": ``},
	"ReplicationController":                        {"spec.replicas": `1`, "spec.selector": ``},
	"Secret":                                       {"stringData": ``, "data": ``},
	"RoleBinding.rbac.authorization.k8s.io":        {"roleRef.apiGroup": `"rbac.authorization.k8s.io"`},
	"ClusterRoleBinding.rbac.authorization.k8s.io": {"roleRef.apiGroup": `"rbac.authorization.k8s.io"`},
	"LimitRange":                                   {"spec.limits[].defaultRequest": ``},
	"Namespace": {
		"metadata.labels": `+{"kubernetes.io/metadata.name": "a"}`, "spec.finalizers": ``,
	},
}

// podsServed is all of it, by path in a template.
func podsServed() map[string]string {
	all := maps.Clone(served)
	maps.Copy(all, apis.Defaults["Pod"])
	for _, field := range servedAnywhere {
		all["metadata."+field] = ""
	}
	for _, list := range []string{"spec.containers[].", "spec.initContainers[]."} {
		for path, value := range servedInContainers {
			all[list+path] = value
		}
		for _, probe := range []string{"livenessProbe.", "readinessProbe.", "startupProbe."} {
			for path, value := range servedInProbes {
				all[list+probe+path] = value
			}
		}
	}
	return all
}

// Notes name the rules whose verdict can change by what the cluster writes into objects.
func Notes(p *policy.Policy) (list finding.List) {
	list = notesOn("pod", podsServed(), p.PodsDiffer)
	for _, k := range constrained(p) {
		if k.custom() {
			list = append(list, finding.Finding{
				Rule: "policy/cluster", Level: finding.Note,
				Message: fmt.Sprintf("object.%s: the definition of this kind in a cluster can set fields where they "+
					"are not set; a rule for such a field can then have another verdict than tegen's", k.name),
			})
		}
		list = append(list, notesOn("object."+k.name, k.served(), func(s policy.Served) []policy.Differing {
			return p.ObjectsDiffer(k.Kind.Kind, k.Group, s)
		})...)
	}
	return list.Once()
}

func notesOn(name string, fields map[string]string, differ func(policy.Served) []policy.Differing,
) (list finding.List) {
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		for _, d := range differ(servedOf(path, fields[path])) {
			list = append(list, warning(name, path, fields[path], d))
		}
	}
	return list
}

// custom reports whether a definition makes the kind.
func (k objectKind) custom() bool {
	return slices.ContainsFunc(apis.Kinds, func(of apis.Kind) bool {
		return of.Controller != nil && of.GroupVersionKind == k.GroupVersionKind
	})
}

// served are the fields that a cluster writes into objects of the kind.
func (k objectKind) served() map[string]string {
	name := k.Kind.Kind
	if k.Group != "" {
		name += "." + k.Group
	}
	all := map[string]string{
		"status": "", "metadata.finalizers": "", "metadata.ownerReferences": "",
		"metadata.labels":      `+{"controller.example.com/name": "a"}`,
		"metadata.annotations": `+{"controller.example.com/name": "a"}`,
	}
	for _, path := range templatesIn(k.Type, nil) {
		for field, value := range podsServed() {
			all[strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]")+"."+field] = value
		}
	}
	if k.Type == reflect.TypeFor[corev1.Pod]() {
		maps.Copy(all, podsServed())
	}
	for _, field := range servedAnywhere {
		all["metadata."+field] = ""
	}
	maps.Copy(all, apis.Defaults[name])
	maps.Copy(all, servedInObjects[name])
	return all
}

func warning(name, path, value string, d policy.Differing) finding.Finding {
	sets := "sets this field"
	switch {
	case strings.HasPrefix(value, "+"):
		sets = "adds to this field"
	case value != "":
		sets = "sets this field to " + value + " where it is not set"
	}
	note := finding.Finding{
		Rule: "policy/cluster", Level: finding.Note,
		Message: fmt.Sprintf("%s.%s: the cluster %s, so that its verdict can differ from tegen's", name, path, sets),
	}
	return note.At(d.Rule)
}

func servedOf(path, value string) policy.Served {
	s := policy.Served{Path: steps(path)}
	text, adds := strings.CutPrefix(value, "+")
	s.Adds = adds
	if text == "" {
		return s
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&s.Value); err != nil {
		panic(fmt.Sprintf("the table of what servers set: %s: %v", path, err)) // a test decodes all
	}
	return s
}

// steps are the fields of a path, with [] as one of its own.
func steps(path string) []string {
	return []string(yamldoc.ParsePath(path))
}
