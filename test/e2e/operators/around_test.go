package operators

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/schema/job"
)

// around: the pods that a controller makes of a target have the checkpoint's hook with the time that it needs, and the
// sidecar as one; they wait for a spot node, whose taint they tolerate.
func around(target string) func(*place) {
	return func(p *place) {
		p.nodes(1, 0, "")
		p.apply(p.rendered("around", `  target: `+target+`
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}
  storage: [{name: runs, mountPath: /runs, claim: runs}]
  checkpoint: {path: /runs/around, save: {signal: SIGUSR1, takes: 90s}}
  sidecars: [{name: exporter, image: "registry.example/exporter:1"}]
  placement: {spot: true, provisioner: gke}
`)...)
		p.bind(p.namespace, "runs")
		p.eventually("two workers", func() error { return p.selected(p.namespace, workers, 2) })
		p.remains("no worker on a node that is not spot", func() error { return p.placed(p.namespace, 0) })
		p.change(p.added[0], `{"metadata":{"labels":{"cloud.google.com/gke-spot":"true"}},"spec":{"taints":[`+
			`{"key":"cloud.google.com/gke-spot","value":"true","effect":"NoSchedule"}]}}`)
		for _, pod := range p.running(2, p.namespace, workers) {
			p.sidecar(pod, "exporter")
			p.saves(pod, "USR1", "90")
		}
	}
}

// saves checks that a pod has a checkpoint written, with a signal, in the seconds that it takes, and has 30 more.
func (p *place) saves(pod corev1.Pod, signal, seconds string) {
	p.Helper()
	hook := pod.Spec.Containers[0].Lifecycle
	if hook == nil || hook.PreStop == nil || hook.PreStop.Exec == nil {
		p.Fatalf("pod %s has the hooks %v, want one that saves", pod.Name, hook)
	}
	want := []string{job.SaveHook, signal, seconds, job.LauncherTorchrun}
	if got := hook.PreStop.Exec.Command; len(got) != 7 || !slices.Equal(got[3:], want) {
		p.Errorf("the hook of pod %s is %q, want one that ends with %q", pod.Name, got, want)
	}
	if got := pod.Spec.TerminationGracePeriodSeconds; got == nil || *got != 120 {
		p.Errorf("pod %s has %v seconds to end, want 120", pod.Name, got)
	}
	if shared := pod.Spec.ShareProcessNamespace; shared == nil || !*shared {
		p.Errorf("the containers of pod %s do not see each other's processes, and the hook finds no launcher", pod.Name)
	}
}

// elsewhere: a job of which MultiKueue has the care is left alone by the target's own controller: it makes nothing of
// it, and says nothing about it.
func elsewhere(kind, target, more string) func(*place) {
	return func(p *place) {
		p.nodes(1, 0, "")
		objects := p.rendered("elsewhere", more+`  target: `+target+`
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}
  gang: {scheduler: kueue, queue: anywhere}
  managedBy: `+job.MultiKueue+"\n")
		job := p.the(kind, objects)
		p.apply(objects...)
		p.remains("what another has the care of", func() error {
			if status, found, _ := unstructured.NestedMap(p.live(job).Object, "status"); found && len(status) > 0 {
				p.Errorf("%s %s has the status %v", kind, job.GetName(), status)
			}
			return p.exist(p.namespace, 0)
		})
		jobs, err := p.client.BatchV1().Jobs(p.namespace).List(p.Context(), metav1.ListOptions{})
		if err != nil || len(jobs.Items) > 0 {
			p.Errorf("%s %s has made %d Jobs: %v", kind, job.GetName(), len(jobs.Items), err)
		}
	}
}

// change merges a patch into a node.
func (p *place) change(node, patch string) {
	p.Helper()
	if _, err := p.client.CoreV1().Nodes().Patch(p.Context(), node, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
}
