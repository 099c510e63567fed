package generators_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestOtherRolesStayOffAccelerators: only workers have the workers' nodes, taints and runtime class.
func TestOtherRolesStayOffAccelerators(t *testing.T) {
	const accelerators = "resources: {gpu: 1, cpu: 1, memory: 4Gi}\nplacement: {runtimeClass: nvidia, " +
		"nodeSelector: {pool: gpu}, tolerations: [{key: nvidia.com/gpu, operator: Exists}]}"
	for name, spec := range map[string][]string{
		"etcd":      {"rendezvous: {backend: etcd, store: etcd}"},
		"companion": {rendezvousImage, "rendezvous: {store: companion}"},
		"servers":   {"framework: mxnet"},
		"mxjob":     {"framework: mxnet", "target: mxjob"},
		"launcher":  {"framework: horovod", "target: mpijob", "workers: {replicas: 2}"},
		"helpers": {
			"storage: [{mountPath: /d, claim: c, dataset: {url: https://a.test/d.zip}}]",
			"framework: horovod", "workers: {replicas: 2}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			workers, others := 0, 0
			for _, p := range pods(objects(load(t, jobText(append(spec, accelerators)...)))) {
				accelerated := false
				for _, c := range p.spec.Containers {
					_, gpu := c.Resources.Limits["nvidia.com/gpu"]
					accelerated = accelerated || gpu
				}
				placed := p.spec.RuntimeClassName != nil && p.spec.NodeSelector["pool"] == "gpu" &&
					len(p.spec.Tolerations) == 1
				bare := p.spec.RuntimeClassName == nil && p.spec.NodeSelector == nil && p.spec.Tolerations == nil
				switch {
				case accelerated:
					workers++
					if !placed {
						t.Errorf("%s has accelerators, and nodes %v", p.from, p.spec.NodeSelector)
					}
				case !bare:
					t.Errorf("%s has no accelerators, and nodes %v, taints %v", p.from, p.spec.NodeSelector,
						p.spec.Tolerations)
				default:
					others++
				}
			}
			if workers == 0 || others == 0 {
				t.Errorf("%d pods with accelerators and %d without: nothing was compared", workers, others)
			}
		})
	}
}

// TestStoresHaveThePriorityOfWorkers: who is pushed out last must not lose the store that it meets in.
func TestStoresHaveThePriorityOfWorkers(t *testing.T) {
	for _, spec := range []string{"rendezvous: {backend: etcd, store: etcd}", rendezvousImage +
		"\nrendezvous: {store: companion}"} {
		for _, p := range pods(objects(load(t, jobText(spec, "placement: {priorityClass: high}")))) {
			if p.spec.PriorityClassName != "high" {
				t.Errorf("%s: %s has priority %q", spec, p.from, p.spec.PriorityClassName)
			}
		}
	}
}

// TestNothingAsked: what an author leaves out by a word is nowhere in the pod, nor is anything put into its place.
func TestNothingAsked(t *testing.T) {
	spec := []string{
		"resources: {cpu: none, memory: none, ephemeralStorage: none, shm: none, tmp: none}",
		"security: {runAsUser: image, restricted: false}", "gracePeriod: 0s", "ttlAfterFinished: none",
		"storage: [{mountPath: /d, claim: c, dataset: {url: https://a.test/d.zip}}]",
	}
	for _, p := range pods(objects(load(t, jobText(spec...)), "worker")) {
		if diff := cmp.Diff(&corev1.PodSecurityContext{}, p.spec.SecurityContext); diff != "" {
			t.Errorf("security (-want +got):\n%s", diff)
		}
		if *p.spec.TerminationGracePeriodSeconds != 0 || len(p.spec.Volumes) != 1 {
			t.Errorf("%ds, volumes %v", *p.spec.TerminationGracePeriodSeconds, p.spec.Volumes)
		}
		for _, c := range p.containers() {
			if len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
				t.Errorf("%s asks for %v, limits %v", c.Name, c.Resources.Requests, c.Resources.Limits)
			}
		}
		if home, set := env(t, worker(t, objects(load(t, jobText(spec...)))))["HOME"]; set {
			t.Errorf("the image's user has HOME %s", home)
		}
	}
}

// TestStoreData: a volume on the node's disk is of the size that its pod may fill.
func TestStoreData(t *testing.T) {
	for says, want := range map[string]string{
		"cpu: 1": "3Gi", "ephemeralStorage: 5Gi": "5Gi", "limits: {ephemeralStorage: 4Gi}": "4Gi",
		"ephemeralStorage: none": "3Gi",
	} {
		text := jobText("rendezvous: {backend: etcd, store: etcd}", "roles: {etcd: {resources: {"+says+"}}}")
		for _, p := range pods(objects(load(t, text), "etcd")) {
			i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == "data" })
			limit := p.spec.Containers[0].Resources.Limits.StorageEphemeral()
			if got := p.spec.Volumes[i].EmptyDir.SizeLimit; got.String() != want || !limit.IsZero() &&
				got.Cmp(*limit) != 0 {
				t.Errorf("%s: the data has %s, the container %s, want %s", says, got, limit, want)
			}
		}
	}
}

// TestHelperNames: what the schema keeps for the pods that prepare a job is what their containers are called.
func TestHelperNames(t *testing.T) {
	text := jobText("framework: horovod", "storage: [{mountPath: /d, claim: c, dataset: {url: https://a.test/d.zip}}]")
	var got []string
	for _, p := range pods(objects(load(t, text), "prefetch", "ssh")) {
		for _, c := range p.containers() {
			got = append(got, c.Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{job.ContainerFetch, job.ContainerGenerate, job.ContainerStore},
		got); diff != "" {
		t.Errorf("containers (-kept +rendered):\n%s", diff)
	}
}
