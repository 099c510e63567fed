package operators

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/cluster"
)

var kueue = program{
	name: "Kueue", kinds: []string{"Job", "Pod", "JobSet", "TrainJob", "PyTorchJob", "MPIJob"},
	definitions: []string{"clusterqueues.kueue.x-k8s.io/v1beta2", "workloads.kueue.x-k8s.io/v1beta2"},
	log:         "kueue", controller: "app.kubernetes.io/name=kueue,control-plane=controller-manager",
	probe: func(p *place) {
		objects := p.golden("mxnet-job-local-kueue")
		p.set(p.localQueue("training", "team", 0, ""), "Hold", "spec", "stopPolicy")
		p.apply(objects...)
		p.workload(p.the("Job", objects))
	},
	scenarios: append([]scenario{
		{"a Job and its dataset", kueueJob},
		{"a worker of MXNet alone", kueueLocal},
		{"all or none", func(p *place) { kueueGangs().allOrNone(p) }},
		{"two contend", func(p *place) { kueueGangs().contend(p) }},
		{"fewer than asked for", kueuePartial},
		{"elastic", kueueElastic},
		{"priority and preemption", kueuePriority},
		{"a resource without quota", kueueUncovered},
		{"bare pods", kueuePods},
		{"topology", kueueTopology},
		{"topology, required, job", kueueTopologies("job").required},
		{"topology, preferred, job", kueueTopologies("job").preferred},
		{"topology, slices, job", kueueTopologies("job").slices},
		{"topology, required, pods", kueueTopologies("pods").required},
		{"topology, slices, pods", kueueTopologies("pods").slices},
		{"topology, required, jobset", func(p *place) { p.needs(jobSet); kueueTopologies("jobset").required(p) }},
		{"topology, required, mpijob", kueueLaunched},
		{"topology, slices, jobset", func(p *place) { p.needs(jobSet); kueueTopologies("jobset").slices(p) }},
		{"without a queue", kueueUnqueued},
	}, kueueKinds...),
}

// queueText is a queue of the scenario's own, whose quota leaves accelerators alone to be short of.
const queueText = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, ephemeral-storage, nvidia.com/gpu]
    flavors:
    - name: %[1]s
      resources:
      - {name: cpu, nominalQuota: 1k}
      - {name: memory, nominalQuota: 10Ti}
      - {name: ephemeral-storage, nominalQuota: 10Ti}
      - {name: nvidia.com/gpu, nominalQuota: %[2]d}
%[3]s
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[4]s, namespace: %[5]s}
spec: {clusterQueue: %[1]s}
`

// localQueue gives a namespace a queue, or another quota to its queue; more are lines of the ClusterQueue's spec.
func (p *place) localQueue(namespace, name string, accelerators int, more string) *unstructured.Unstructured {
	p.Helper()
	objects := p.read("queue", fmt.Appendf(nil, queueText, p.namespace, accelerators, more, name, namespace))
	p.apply(objects...)
	return p.the("LocalQueue", objects)
}

// workload is what Kueue made of an object in a queue: as long as there is none, Kueue has not seen it.
func (p *place) workload(of *unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	owner := p.live(of)
	var found *unstructured.Unstructured
	p.eventually("a Workload of "+of.GetName(), func() error {
		found = nil
		for _, w := range p.list(schema.GroupVersionKind{
			Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload",
		}, of.GetNamespace()) {
			for _, ref := range w.GetOwnerReferences() {
				if ref.UID == owner.GetUID() {
					found = &w
				}
			}
		}
		if found == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return found
}

// podSets are the names of a Workload's sets of pods with their counts: the gang that Kueue admits.
func podSets(w *unstructured.Unstructured) string {
	sets, _, _ := unstructured.NestedSlice(w.Object, "spec", "podSets")
	text := ""
	for _, entry := range sets {
		set, _ := entry.(map[string]any)
		text += fmt.Sprintf("%v=%v ", set["name"], set["count"])
	}
	return text
}

// suspensions are where a kind keeps its field suspend, if not in its spec.
var suspensions = map[string][]string{
	"PyTorchJob": {"spec", "runPolicy", "suspend"}, "MPIJob": {"spec", "runPolicy", "suspend"},
}

func suspendedNow(o *unstructured.Unstructured) bool {
	path, ok := suspensions[o.GetKind()]
	if !ok {
		path = []string{"spec", "suspend"}
	}
	suspend, _, _ := unstructured.NestedBool(o.Object, path...)
	return suspend
}

// held checks that an object, applied without a word of suspension, is suspended by Kueue's webhook and stays so, and
// returns its Workload.
func (p *place) held(o *unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	w := p.workload(o)
	p.remains("held in the queue", func() error {
		if !suspendedNow(p.live(o)) {
			return errors.New("it is not suspended")
		}
		return p.existing(o.GetNamespace(), 0)
	})
	return w
}

// existing checks that there are so many workers, placed or not.
func (p *place) existing(namespace string, want int) error {
	pods, err := p.pods(namespace, workers)
	if err == nil && len(pods) != want {
		err = fmt.Errorf("there are %d workers, want %d", len(pods), want)
	}
	return err
}

// kueueGangs are gangs that a quota gives room to: there are nodes enough.
func kueueGangs() dialect {
	quota := 0
	return dialect{
		scheduler: "kueue", target: "job", more: ", queue: team",
		room: func(p *place, accelerators int) {
			if quota == 0 {
				p.nodes(1, 16, p.namespace)
			}
			quota += accelerators
			p.localQueue(p.namespace, "team", quota, "")
		},
	}
}

// kueueJob: the dataset comes through the same queue, the workers are held until there is quota for all, a stopped
// queue takes them back, and the end of the pods is the end of the Workload.
func kueueJob(p *place) {
	const namespace = "training"
	p.nodes(1, 8, "")
	p.localQueue(namespace, "team-a", 2, "")
	p.apply(p.read("class and claim", []byte(highPriority+datasets))...)
	objects := p.golden("gang-kueue")
	p.apply(objects...)
	dataset, job := p.job("kueue-prefetch-data", objects), p.job("kueue-worker", objects)
	prefetch := p.running(1, namespace, "app.kubernetes.io/component=prefetch")
	w := p.held(job)
	if got, want := podSets(w), "main=4 "; got != want {
		p.Errorf("the Workload has the sets %q, want %q", got, want)
	}
	priority, _, _ := unstructured.NestedInt64(w.Object, "spec", "priority")
	if queue, _, _ := unstructured.NestedString(w.Object, "spec", "queueName"); queue != "team-a" || priority != 1000 {
		p.Errorf("the Workload is in the queue %q with priority %d, want team-a and 1000", queue, priority)
	}
	p.end(cluster.OutcomeSucceeded, prefetch...)
	p.condition(dataset, "Complete")

	p.localQueue(namespace, "team-a", 4, "")
	p.running(4, namespace, workers)
	p.set(p.workload(job), false, "spec", "active")
	p.running(0, namespace, workers)
	p.held(job)
	p.imported(objects, job, dataset)
	p.set(p.workload(job), true, "spec", "active")
	pods := p.running(4, namespace, workers)
	p.imported(objects, job, dataset)
	for _, pod := range pods {
		if len(pod.Spec.SchedulingGates) > 0 {
			p.Errorf("pod %s has the gates %v", pod.Name, pod.Spec.SchedulingGates)
		}
	}
	p.end(cluster.OutcomeSucceeded, pods...)
	p.condition(job, "Complete")
	p.condition(p.workload(job), "Finished")
}

// kueueLocal: a queue that is on hold admits nobody, and everybody when it goes on.
func kueueLocal(p *place) {
	p.nodes(1, 0, "")
	queue := p.localQueue("training", "team", 0, "")
	p.set(queue, "Hold", "spec", "stopPolicy")
	objects := p.golden("mxnet-job-local-kueue")
	p.apply(objects...)
	job := p.the("Job", objects)
	p.held(job)
	p.set(queue, "None", "spec", "stopPolicy")
	p.end(cluster.OutcomeSucceeded, p.running(1, "training", workers)...)
	p.condition(job, "Complete")
}

// highPriority is what gang-kueue calls high, and datasets the claim that it wants, with a volume that KWOK's nodes
// never mount.
const (
	highPriority = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
---
`
	datasets = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: e2e-kueue-datasets}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  hostPath: {path: /tmp}
  claimRef: {name: datasets, namespace: training}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: datasets, namespace: training}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: e2e-kueue-datasets
  resources: {requests: {storage: 1Gi}}
`
)

// job is the Job of a name among objects.
func (p *place) job(name string, among []*unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	for _, o := range among {
		if o.GetKind() == "Job" && o.GetName() == name {
			return o
		}
	}
	p.Fatalf("there is no Job %s", name)
	return nil
}

// queued renders workers of one accelerator each that wait in the queue team of the scenario's namespace.
func (p *place) queued(name, target, workers, more string) []*unstructured.Unstructured {
	p.Helper()
	return p.rendered(name, fmt.Sprintf(`  target: %s
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: %s
  resources: {cpu: 100m, memory: 64Mi, gpu: 1, shm: 16Mi, ephemeralStorage: 2Gi}
  placement:
    nodeSelector: {%s: %s}
    tolerations: [{key: %[3]s, value: %[4]s, effect: NoSchedule}]
%s`, target, workers, reserved, p.namespace, more))
}

// kueuePartial: a Job that may start with two of four starts with two where the quota is for two, completes with these,
// and does not grow when the quota does: Kueue admits once.
func kueuePartial(p *place) {
	p.nodes(1, 8, p.namespace)
	p.localQueue(p.namespace, "team", 2, "")
	objects := p.queued("partial", "job", "{replicas: 4, min: 2, max: 4}", `
  gang: {scheduler: kueue, queue: team, minAvailable: 4}
  workload:
    annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}
`)
	p.apply(objects...)
	job := p.the("Job", objects)
	pods := p.running(2, p.namespace, workers)
	p.localQueue(p.namespace, "team", 4, "")
	p.remains("two run", func() error { return p.existing(p.namespace, 2) })
	if n, _, _ := unstructured.NestedInt64(p.live(job).Object, "spec", "parallelism"); n != 2 {
		p.Errorf("the parallelism is %d, want 2", n)
	}
	p.end(cluster.OutcomeSucceeded, pods...)
	p.condition(job, "Complete")
}

// kueueElastic: the pods that run stay when the number of workers changes, and new ones wait behind a gate for quota.
func kueueElastic(p *place) {
	const namespace = "training"
	p.nodes(1, 16, "")
	p.localQueue(namespace, "team-a", 4, "")
	objects := p.golden("gang-kueue-elastic")
	p.apply(objects...)
	job := p.the("Job", objects)
	first := p.running(4, namespace, workers)
	p.imported(objects, job)
	p.scale(job, 6)
	p.remains("four run and two wait", func() error {
		pods, err := p.pods(namespace, workers)
		if err != nil || len(pods) != 6 {
			return err // the controller has not made the two yet
		}
		gated := 0
		for _, pod := range pods {
			if len(pod.Spec.SchedulingGates) > 0 {
				gated++
			}
		}
		if gated != 2 {
			return fmt.Errorf("%d of %d pods have a gate, want 2", gated, len(pods))
		}
		return nil
	})
	if err := p.existing(namespace, 6); err != nil {
		p.Error(err)
	}
	p.localQueue(namespace, "team-a", 8, "")
	p.stayed(first, p.running(6, namespace, workers))
	p.scale(job, 3)
	p.stayed(p.running(3, namespace, workers), first)
}

// scale is what another number of workers renders for a Job.
func (p *place) scale(job *unstructured.Unstructured, replicas int64) {
	p.Helper()
	p.set(job, map[string]any{"parallelism": replicas, "completions": replicas}, "spec")
}

// stayed checks that all pods are still there.
func (p *place) stayed(pods, among []corev1.Pod) {
	p.Helper()
	now := map[string]bool{}
	for _, pod := range among {
		now[string(pod.UID)] = true
	}
	for _, pod := range pods {
		if !now[string(pod.UID)] {
			p.Errorf("pod %s was replaced", pod.Name)
		}
	}
}

// kueuePriority: of two that wait the one of the higher class goes first, whoever came first, and one that comes later
// takes the place of a lower one where the ClusterQueue allows it.
func kueuePriority(p *place) {
	const preempt = "  preemption: {withinClusterQueue: LowerPriority}\n"
	p.nodes(1, 8, p.namespace)
	p.localQueue(p.namespace, "team", 0, preempt)
	p.apply(p.read("class", []byte(highPriority))...)
	all := map[string][]*unstructured.Unstructured{}
	for name, priority := range map[string]string{"low": "", "urgent": ", priority: high"} {
		all[name] = p.queued(name, "job", "{replicas: 2}", "  gang: {scheduler: kueue, queue: team"+priority+"}\n")
	}
	low, urgent := p.the("Job", all["low"]), p.the("Job", all["urgent"])
	p.apply(all["low"]...)
	p.held(low)
	p.apply(all["urgent"]...)
	p.held(urgent)
	p.localQueue(p.namespace, "team", 2, preempt)
	p.owned(2, urgent)
	p.end(cluster.OutcomeSucceeded, p.running(2, p.namespace, workers)...)
	p.condition(urgent, "Complete")
	p.owned(2, low)

	p.delete(p.Context(), urgent)
	p.apply(urgent)
	p.owned(2, urgent)
	if !suspendedNow(p.live(low)) {
		p.Error("the lower job is not suspended")
	}
	p.delete(p.Context(), urgent)
	p.owned(2, low)
}

// owned waits until so many workers run, all of one object.
func (p *place) owned(want int, o *unstructured.Unstructured) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d workers of %s alone", want, o.GetName()), func() error {
		pods, err := p.pods(p.namespace, workers)
		got := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && len(pod.OwnerReferences) > 0 &&
				pod.OwnerReferences[0].Name == o.GetName() {
				got++
			}
		}
		if err == nil && (got != want || len(pods) != got+p.finished(pods)) {
			err = fmt.Errorf("%d of %d", got, len(pods))
		}
		return err
	})
}

func (p *place) finished(pods []corev1.Pod) (n int) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			n++
		}
	}
	return n
}

// kueueUncovered: a ClusterQueue without quota for a resource that the pods request admits none of them. Every worker
// requests disk, which is in no example of Kueue's own documentation.
func kueueUncovered(p *place) {
	without := strings.NewReplacer(", ephemeral-storage", "",
		"      - {name: ephemeral-storage, nominalQuota: 10Ti}\n", "")
	p.nodes(1, 8, p.namespace)
	p.apply(p.read("queue", fmt.Appendf(nil, without.Replace(queueText), p.namespace, 8, "", "team", p.namespace))...)
	objects := p.queued("disk", "job", "{replicas: 2}", "  gang: {scheduler: kueue, queue: team}\n")
	p.apply(objects...)
	job := p.the("Job", objects)
	p.held(job)
	conditions, _, _ := unstructured.NestedSlice(p.workload(job).Object, "status", "conditions")
	if text := fmt.Sprint(conditions); !strings.Contains(text, "ephemeral-storage") {
		p.Errorf("the Workload says nothing of ephemeral-storage: %s", text)
	}
	p.localQueue(p.namespace, "team", 8, "")
	p.running(2, p.namespace, workers)
}
