package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestReleases: a field that the cluster's API server would drop is refused up to the release before the one that has
// it, at its place, and taken from then on.
func TestReleases(t *testing.T) {
	const claim = "storage: [{mountPath: /c, claim: c}]"
	for _, c := range []struct {
		job, at string
		minor   int
	}{
		{"workers: {replicas: 2, min: 1}", "workers.min", 31},
		{"workers: {min: 1, max: 2}", "workers.min", 31},
		{"workers: {replicas: 2, min: 1}, target: jobset", "workers.min", 31},
		{"workers: {replicas: 2, min: 1}, target: pytorchjob", "", 0},
		{"workers: {replicas: 2, min: 1}, target: vcjob", "", 0},
		{"workers: {replicas: 2}, framework: horovod", "target", 31},
		{"workers: {replicas: 2}, framework: mpi", "target", 31},
		{"workers: {replicas: 2}, framework: mpi, target: mpijob", "", 0},
		{"workers: {replicas: 2}, managedBy: acme.example/d", "managedBy", 32},
		{"workers: {replicas: 2}, target: jobset, managedBy: acme.example/d", "failure.ignoreDisruptions", 26},
		{"workers: {replicas: 2}, failure: {restartsPerWorker: 3}", "failure.restartsPerWorker", 29},
		{
			"workers: {replicas: 2}, failure: {restartsPerWorker: 3}, target: jobset, " + claim,
			"failure.restartsPerWorker", 29,
		},
		{"workers: {replicas: 2}, failure: {ignoreDisruptions: false, restarts: 3}", "kubernetesVersion", 29},
		{"workers: {replicas: 2}, failure: {ignoreDisruptions: false, restarts: 0}", "", 0},
		{"workers: {replicas: 2}, failure: {ignoreDisruptions: true}", "failure.ignoreDisruptions", 26},
		{"workers: {replicas: 2}, sidecars: [{name: a, image: 'a:1'}]", "sidecars", 29},
		{"workers: {replicas: 2}, code: {mountPath: /w, image: 'a/code:1'}", "code.image", 35},
		{
			"workers: {replicas: 2}, resources: {deviceClass: gpu.example, gpu: 1, cpu: 1, memory: 1Gi}",
			"resources.deviceClass", 32,
		},
		{"workers: {replicas: 2}, resources: {claims: [a]}", "resources.claims", 32},
		{"workers: {replicas: 2}, target: pods, suspend: true", "suspend", 27},
		{"workers: {replicas: 2}, target: pods", "", 0},
		{
			"workers: {replicas: 2}, rendezvous: {store: companion, backend: etcd, companion: {storage: {size: " +
				"1Gi}}}, target: pytorchjob, images: {rendezvous: 'a:1'}",
			"rendezvous.companion.storage", 27,
		},
	} {
		on := func(minor int) string {
			text := fmt.Sprintf("%s%s, kubernetesVersion: '1.%d'}\n", jobHead, c.job, minor)
			_, err := Load([]Source{{Name: "job.yaml", Data: []byte(text)}})
			if err == nil {
				return ""
			}
			return err.Error()
		}
		last := 25
		if c.minor > 0 {
			last = c.minor - 1
		}
		says, want := on(last), fmt.Sprintf("spec.%s: Kubernetes 1.%d has no ", c.at, last)
		if c.minor > 0 && !strings.Contains(says, want) {
			t.Errorf("%s on 1.%d: %q, want %q", c.job, last, says, want)
		}
		if c.minor > 0 {
			last = c.minor
		}
		if says := on(last); says != "" {
			t.Errorf("%s on 1.%d: %s", c.job, last, says)
		}
	}
}

// TestElsewhereNotes: what MultiKueue leaves behind, of the jobs that use it.
func TestElsewhereNotes(t *testing.T) {
	const queue = "workers: {replicas: 2}, gang: {scheduler: kueue, queue: team}, "
	const elsewhere = queue + "managedBy: kueue.x-k8s.io/multikueue"
	const devices = ", resources: {deviceClass: a.example, gpu: 1, cpu: 1, memory: 1Gi}"
	for says, want := range map[string]string{
		queue + "target: jobset": "",
		elsewhere:                "Kueue copies the Job alone",
		elsewhere + ", target: trainjob": "" +
			"LocalQueue team, its TrainingRuntime. Apply to each worker cluster all that " +
			"is rendered but the TrainJob",
		elsewhere + ", identity: {podIdentity: {}}": "" +
			"LocalQueue team, its ServiceAccount, its headless Service. Apply",
		elsewhere + ", target: jobset, storage: [{mountPath: /d, claim: d}]": "" +
			"team, its volumes with their data. Apply",
		elsewhere + ", images: {rendezvous: 'a:1'}, rendezvous: {store: companion}": "" +
			"the store where its workers meet",
		elsewhere + devices:                "its ResourceClaimTemplate",
		elsewhere + ", framework: horovod": "its ConfigMap and keys of ssh",
	} {
		notes := strings.Join(note.Of(loadOne(t, jobHead+says+"}\n")), "\n")
		if !strings.Contains(notes, want) || strings.Contains(notes, "spec.managedBy: ") != (want != "") {
			t.Errorf("%s: notes %q, want %q", says, notes, want)
		}
	}
}

// TestBesideOnSpot: which pods nothing keeps off spot nodes.
func TestBesideOnSpot(t *testing.T) {
	const job = "workers: {replicas: 2}, placement: {spot: true, provisioner: "
	for says, want := range map[string]string{
		job + "karpenter}, framework: mpi, target: mpijob": "the pods of launcher too: to keep those off, set " +
			"nodeSelector: {karpenter.sh/capacity-type: on-demand} at spec.roles.launcher",
		job + "eks}, rendezvous: {store: etcd, backend: etcd-v2}": "" +
			"{eks.amazonaws.com/capacityType: ON_DEMAND} at spec.roles.etcd",
		job + "eks}, rendezvous: {store: etcd, backend: etcd-v2}, roles: {etcd: {nodeSelector: " +
			"{eks.amazonaws.com/capacityType: ON_DEMAND}}}": "",
		job + "gke}, rendezvous: {store: etcd, backend: etcd-v2}": "",
		job + "aks}, rendezvous: {store: etcd, backend: etcd-v2}": "",
		job + "eks}": "",
		job + "eks}, groups: [{name: side, replicas: 1, command: [a]}]": "ON_DEMAND} at spec.groups[0]",
	} {
		notes := strings.Join(note.SpotNotes(&loadOne(t, jobHead+says+"}\n").Spec), "\n")
		if !strings.Contains(notes, want) || strings.Contains(notes, "no taint") != (want != "") {
			t.Errorf("%s: notes %q, want %q", says, notes, want)
		}
	}
}
