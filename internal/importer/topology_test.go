package importer_test

import (
	"fmt"
	"testing"
)

// TestTopology: what says where in the network pods are placed becomes gang.topology, and what that cannot say stays
// where it is, or is reported.
func TestTopology(t *testing.T) {
	t.Parallel()
	queued := func(annotations string) string {
		return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: j-worker, namespace: ml, labels: "+
			"{kueue.x-k8s.io/queue-name: q}}, spec: {completionMode: Indexed, parallelism: 4, completions: 4, "+
			"template: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never, %s}}}}", annotations, trainsAlone)
	}
	const jobSet = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j, namespace: ml, " +
		"annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool}}, spec: " +
		"{replicatedJobs: [{name: worker, replicas: 1, template: {spec: {completionMode: Indexed, parallelism: 2, " +
		"completions: 2, template: {spec: {restartPolicy: Never, " + trainsAlone + "}}}}}]}}"
	volcano := func(topology string) string {
		return fmt.Sprintf("{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: ml}, "+
			"spec: {schedulerName: volcano, minAvailable: 4, networkTopology: %s, tasks: [{name: worker, replicas: 4, "+
			"template: {spec: {restartPolicy: Never, %s}}}]}}", topology, trainsAlone)
	}
	for name, c := range map[string]claim{
		"Kueue's, preferred": {
			in:   queued("kueue.x-k8s.io/podset-preferred-topology: cloud.provider.com/topology-block"),
			jobs: []string{`level: cloud.provider.com/topology-block`, `mode: preferred`}, silent: []string{"podset"},
		},
		"Kueue's, in slices": {
			in: queued("kueue.x-k8s.io/podset-slice-required-topology: acme.com/rack, " +
				"kueue.x-k8s.io/podset-slice-size: '2'"),
			jobs: []string{`level: acme.com/rack`, `slice: 2`}, silent: []string{"podset"},
		},
		"Kueue's, of two levels": {
			in: queued("kueue.x-k8s.io/podset-required-topology: acme.com/block, " +
				"kueue.x-k8s.io/podset-slice-required-topology: acme.com/rack, kueue.x-k8s.io/podset-slice-size: '2'"),
			jobs: []string{
				`podset-required-topology: acme.com/block`, `podset-slice-required-topology: acme.com/rack`,
			},
			silent: []string{"level:"},
		},
		"JobSet's": {
			in:   jobSet,
			jobs: []string{`scheduler: none`, `level: cloud.google.com/gke-nodepool`}, silent: []string{"exclusive"},
		},
		"Volcano's, by name": {
			in:   volcano("{mode: soft, highestTierName: acme.com/rack}"),
			jobs: []string{`scheduler: volcano`, `level: acme.com/rack`, `mode: preferred`},
		},
		"Volcano's, by number": {
			in:       volcano("{mode: hard, highestTierAllowed: 1}"),
			reported: []string{`networkTopology.*dropped.*name the level`}, silent: []string{"topology"}, lossy: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}
