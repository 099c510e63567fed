package importer_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestLiveGang: pods, Services and PodGroups as a cluster has them become a job that says nothing of that cluster: not
// which nodes the pods had.
func TestLiveGang(t *testing.T) {
	t.Parallel()
	const admitted = "nodeName: kwok-7, priority: 0, preemptionPolicy: PreemptLowerPriority, schedulerName: " +
		"default-scheduler, tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, " +
		"tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, " +
		"tolerationSeconds: 300}]"
	for name, c := range map[string]claim{
		"as admitted": {
			in: liveGang(admitted, "Pod", "SingleStack"), jobs: []string{`replicas: 2`, `scheduler: kubernetes`},
			unreported: []string{
				"nodeName", "priority", "preemption", "toleration", "default-scheduler", "finalizers", "disruption",
				`spec\.ip`, "clusterIP", "internalTraffic",
			},
			lossy: true, // the pods' names
		},
		"not as by default": {
			in: liveGang("nodeName: kwok-7, schedulerName: ours, preemptionPolicy: Never, tolerations: [{key: "+
				"node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]",
				"PodGroup", "PreferDualStack"),
			jobs:       []string{`scheduler: ours`, `preemptionPolicy: Never`, `seconds: 20`},
			unreported: []string{"nodeName"},
			reported:   []string{`disruptionMode: "PodGroup": dropped`, `ipFamilyPolicy: "PreferDualStack": dropped`},
			lossy:      true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// liveGang is two bare pods of one of Kubernetes' own PodGroups, as kubectl get prints them.
func liveGang(admitted, disruption, families string) string {
	const meta = "metadata: {namespace: training, resourceVersion: '1', uid: 89093f24-8e24-4c47-aaf3-0a567945c68e, "
	var items []string
	for i := range 2 {
		items = append(items, fmt.Sprintf("{apiVersion: v1, kind: Service, %sname: g-worker-%d}, spec: {"+
			"clusterIP: None, clusterIPs: [None], internalTrafficPolicy: Cluster, ipFamilies: [IPv6], "+
			"ipFamilyPolicy: %s, "+
			"selector: {job-name: g, apps.kubernetes.io/pod-index: '%[2]d'}, sessionAffinity: None, type: ClusterIP}}",
			meta, i, families), fmt.Sprintf("{apiVersion: v1, kind: Pod, %sname: g-worker-%d, labels: {job-name: g, "+
			"apps.kubernetes.io/pod-index: '%[2]d'}}, spec: {restartPolicy: Never, hostname: g-worker-%[2]d, "+
			"schedulingGroup: {podGroupName: g}, %s, %s}, status: {phase: Running}}", meta, i, admitted, trainsAlone))
	}
	items = append(items, "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, "+meta+"name: g, finalizers: "+
		"[scheduling.k8s.io/podgroup-protection]}, spec: {disruptionMode: "+disruption+
		", schedulingPolicy: {gang: {minCount: 2}}}, status: {conditions: []}}")
	return "apiVersion: v1\nkind: List\nitems: [" + strings.Join(items, ", ") + "]\n"
}
