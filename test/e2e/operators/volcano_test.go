package operators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/test/cluster"
)

var volcano = program{
	name: "Volcano", kinds: []string{"Job of batch.volcano.sh", "PodGroup of scheduling.volcano.sh"},
	definitions: []string{
		"jobs.batch.volcano.sh/v1alpha1", "podgroups.scheduling.volcano.sh/v1beta1",
		"queues.scheduling.volcano.sh/v1beta1",
	},
	log: "volcano", controller: "app=volcano-controller",
	probe: func(p *place) {
		objects := p.golden("torchelastic-vcjob-no-restarts")
		p.apply(objects...)
		job := p.the("Job", objects)
		if queue, _, _ := unstructured.NestedString(p.live(job).Object, "spec", "queue"); queue != "default" {
			p.Fatalf("the webhook of Volcano gave the job the queue %q, want default", queue)
		}
		p.phase(job, "Pending") // by the controllers
		p.eventually("the scheduler to look at the PodGroup", func() error {
			return p.groupPhase(job.GetNamespace(), "Pending")
		})
	},
	scenarios: []scenario{
		{"a Job's pods", vcJobPods},
		{"a Job that is all that can be said", vcJobFull},
		{"done, and deleted", vcJobEnd},
		{"enough have succeeded", vcJobEnough},
		{"restarts", vcJobRestarts},
		{"no restarts", vcJobNoRestarts},
		{"fatal exit code", vcJobFatal},
		{"groups in order", vcJobOrdered},
		{"all made anew", vcJobAnew},
		{"keys of a plugin", vcJobKeys},
		{"groups, all or none", vcJobGroupsGang},
		{"checkpoint, sidecar, spot", around("vcjob")},
		{"all or none, vcjob", volcanoJobs.allOrNone},
		{"at least, vcjob", volcanoJobs.atLeast},
		{"contend, vcjob", volcanoJobs.contend},
		{"mended, vcjob", volcanoJobs.mends},
		{"scaled, vcjob", volcanoJobs.scales},
		{"lets go, vcjob", volcanoJobs.letsGo},
		{"all or none, job", volcanoGroups.allOrNone},
		{"at least, job", volcanoGroups.atLeast},
		{"contend, job", volcanoGroups.contend},
		{"mended, job", volcanoGroups.mends},
		{"scaled, job", volcanoGroups.scales},
		{"lets go, job", volcanoGroups.letsGo},
		{"all or none, pods", volcanoPods.allOrNone},
		{"at least, pods", volcanoPods.atLeast},
		{"one PodGroup for a Job", volcanoGroup},
		{"one PodGroup for roles", volcanoRoles},
		{"all or none, jobset", volcanoOf("jobset", jobSet, dialect.allOrNone)},
		{"at least, jobset", volcanoOf("jobset", jobSet, dialect.atLeast)},
		{"all or none, pytorchjob", volcanoOf("pytorchjob", trainingOperator, dialect.allOrNone)},
		{"at least, pytorchjob", volcanoOf("pytorchjob", trainingOperator, dialect.atLeast)},
		{"topology, required, vcjob", volcanoTopologies("vcjob").required},
		{"topology, preferred, vcjob", volcanoTopologies("vcjob").preferred},
		{"topology, slices, vcjob", volcanoTopologies("vcjob").slices},
		{"topology, required, job", volcanoTopologies("job").required},
		{"topology, preferred, job", volcanoTopologies("job").preferred},
		{"topology of a tier that is not there", volcanoNoTier},
		{"priority", volcanoPriority},
		{"queues", volcanoQueues},
		{"closed queue", volcanoClosed},
		{"aborted and never resumed", vcJobOneRetry},
		{"aborted and resumed", vcJobCommand},
	},
}

var (
	volcanoJobs   = dialect{scheduler: "volcano", target: "vcjob"}
	volcanoGroups = dialect{scheduler: "volcano", target: "job"}
	volcanoPods   = dialect{scheduler: "volcano", target: "pods"}
)

// phase waits until a Volcano Job is in one.
func (p *place) phase(job *unstructured.Unstructured, want string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s to be %s", job.GetName(), want), func() error {
		live, err := p.get(p.Context(), job)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(live.Object, "status", "state", "phase"); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// groupPhase checks that a namespace has one PodGroup, in this phase.
func (p *place) groupPhase(namespace, want string) error {
	groups := p.list(apis.VolcanoPodGroupKind, namespace)
	if len(groups) != 1 {
		return fmt.Errorf("there are %d PodGroups, want one", len(groups))
	}
	if got, _, _ := unstructured.NestedString(groups[0].Object, "status", "phase"); got != want {
		return fmt.Errorf("the PodGroup %s is %q, want %s", groups[0].GetName(), got, want)
	}
	return nil
}

// vcJobPods: the controller makes the pods and the Service that the rendezvous needs, and sets its own variables beside
// ours.
func vcJobPods(p *place) {
	p.nodes(1, 8, "")
	objects := p.golden("torchelastic-vcjob-minimal")
	p.apply(objects...)
	job := p.the("Job", objects)
	pods := p.foretold("torchelastic-vcjob-minimal")
	p.vcService(job)
	want := []string{
		"TEGEN_RUN_UID", "PET_RDZV_ID", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_CONF", "PET_NNODES",
		"PET_NPROC_PER_NODE", "PET_MAX_RESTARTS", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "HOME", "PYTHONUNBUFFERED",
	}
	added := []string{"VC_TASK_INDEX", "VC_WORKER_HOSTS", "VC_WORKER_NUM", "VK_TASK_INDEX"}
	for i, pod := range pods {
		var names []string
		for _, v := range pod.Spec.Containers[0].Env {
			names = append(names, v.Name)
			if v.Name == "VC_TASK_INDEX" && v.Value != fmt.Sprint(i) {
				p.Errorf("VC_TASK_INDEX of pod %s is %s", pod.Name, v.Value)
			}
		}
		if !slices.Equal(names[:len(want)], want) {
			p.Errorf("the variables of pod %s begin with %q, want %q", pod.Name, names, want)
		}
		theirs := slices.Sorted(slices.Values(names[len(want):]))
		if !slices.Equal(theirs, added) {
			p.Errorf("the controller adds the variables %q, want %q", theirs, added)
		}
		if got := pod.Annotations[apis.VCRunAnnotation]; got != job.GetName()+"-"+string(p.live(job).GetUID()) {
			p.Errorf("pod %s belongs to %q, want the job's name and uid: the run is called by them", pod.Name, got)
		}
	}
	hosts, err := p.client.CoreV1().ConfigMaps(job.GetNamespace()).Get(p.Context(), job.GetName()+"-svc",
		metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if got, want := hosts.Data["VC_WORKER_HOSTS"],
		"resnet-vc-worker-0.resnet-vc,resnet-vc-worker-1.resnet-vc,resnet-vc-worker-2.resnet-vc"; got != want {
		p.Errorf("VC_WORKER_HOSTS is %q, want %q", got, want)
	}
	policies, err := p.client.NetworkingV1().NetworkPolicies(job.GetNamespace()).List(p.Context(), metav1.ListOptions{})
	if err != nil || len(policies.Items) != 1 {
		p.Errorf("there are %d NetworkPolicies, want the rendered one: %v", len(policies.Items), err)
	}
}

// vcService checks the Service by which workers find each other.
func (p *place) vcService(job *unstructured.Unstructured) {
	p.Helper()
	service, err := p.client.CoreV1().Services(job.GetNamespace()).Get(p.Context(), job.GetName(), metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if s := service.Spec; s.ClusterIP != corev1.ClusterIPNone || !s.PublishNotReadyAddresses {
		p.Errorf("the Service of the job has the address %q, and publishes those of pods that are not ready: %v",
			s.ClusterIP, s.PublishNotReadyAddresses)
	}
}

// vcJobFull: every field of ours arrives in the PodGroup and in the pods, and the objects can be applied again.
func vcJobFull(p *place) {
	p.nodes(1, 8, "")
	p.queue("research")
	p.priority("training-high", 1000)
	objects := p.golden("torchelastic-vcjob-full")
	p.apply(objects...)
	job := p.the("Job", objects)
	p.bind(job.GetNamespace(), "imagenet", "sweep-vc-runs")
	pods := p.foretold("torchelastic-vcjob-full")
	p.vcService(job)
	p.apply(objects...) // as a reconciler does
	p.imported(objects, job)
	for _, pod := range pods {
		if pod.Spec.Priority == nil || *pod.Spec.Priority != 1000 {
			p.Errorf("pod %s has not the priority of its class", pod.Name)
		}
	}
	groups := p.list(apis.VolcanoPodGroupKind, job.GetNamespace())
	if len(groups) != 1 {
		p.Fatalf("there are %d PodGroups, want one", len(groups))
	}
	spec := groups[0].Object["spec"].(map[string]any) //nolint:forcetypeassert // by its definition
	for field, want := range map[string]any{
		"minMember": int64(4), "queue": "research", "priorityClassName": "training-high",
	} {
		if spec[field] != want {
			p.Errorf("%s of the PodGroup is %v, want %v", field, spec[field], want)
		}
	}
}

// vcJobEnd: when all have succeeded the job is Completed, and gone after its time.
func vcJobEnd(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 2}", "  ttlAfterFinished: 5s")
	p.end(cluster.OutcomeSucceeded, p.running(2, p.namespace, workers)...)
	p.phase(job, "Completed")
	p.eventually("the job to be deleted", func() error {
		if jobs := p.list(apis.VCJobKind, p.namespace); len(jobs) > 0 {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	p.gone(p.namespace)
}

// vcJobEnough: an elastic job is over when as many have succeeded as it needs; what still runs, ends.
func vcJobEnough(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 4, min: 2, max: 4}", "")
	pods := p.running(4, p.namespace, workers)
	p.end(cluster.OutcomeSucceeded, pods[0])
	p.remains("a job of which one succeeded", func() error { return p.inPhase(job, "Running") })
	p.end(cluster.OutcomeSucceeded, pods[1])
	p.phase(job, "Completed")
	p.running(0, p.namespace, workers)
}

// vcJob renders and applies a Volcano Job of one accelerator for each worker.
func (p *place) vcJob(workers, extra string) *unstructured.Unstructured {
	p.Helper()
	objects := p.rendered("train", fmt.Sprintf(`  target: vcjob
  launcher: entrypoint
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: %s
  resources: {cpu: 100m, memory: 64Mi, gpu: 1, shm: 16Mi, ephemeralStorage: 1Gi}
  placement:
    nodeSelector: {%s: %s}
    tolerations: [{key: %[2]s, value: %[3]s, effect: NoSchedule}]
%[4]s`, workers, reserved, p.namespace, extra))
	p.apply(objects...)
	return p.the("Job", objects)
}

// inPhase checks a Volcano Job's phase.
func (p *place) inPhase(job *unstructured.Unstructured, want string) error {
	live, err := p.get(p.Context(), job)
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(live.Object, "status", "state", "phase"); got != want {
		return fmt.Errorf("it is %q", got)
	}
	return nil
}

// vcJobRestarts: a worker that failed is made again, alone, where the accelerators are just enough; with one failure
// more than it survives the job has failed, and nobody runs.
func vcJobRestarts(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 4}", "  failure: {restarts: 2}")
	before := p.running(4, p.namespace, workers)
	for range 2 {
		p.end(cluster.OutcomeFailed, before[2])
		after := p.replaced(before[2])
		for i, pod := range after {
			if same := pod.UID == before[i].UID; same == (i == 2) {
				p.Errorf("pod %s is the one of before: %v", pod.Name, same)
			}
		}
		p.vcService(job)
		before = after
	}
	p.end(cluster.OutcomeFailed, before[0])
	p.phase(job, "Failed")
	p.running(0, p.namespace, workers)
}

// replaced waits until four run, none of which is this one.
func (p *place) replaced(lost corev1.Pod) (pods []corev1.Pod) {
	p.Helper()
	p.eventually("the replacement of "+lost.Name, func() error {
		all, err := p.pods(lost.Namespace, workers)
		if err != nil {
			return err
		}
		pods = all
		var states []string
		good := 0
		for _, pod := range all {
			states = append(states, fmt.Sprintf("%s is %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName))
			if pod.UID != lost.UID && pod.Status.Phase == corev1.PodRunning {
				good++
			}
		}
		if good != 4 {
			return fmt.Errorf("%s", strings.Join(states, ", "))
		}
		return nil
	})
	return pods
}

// vcJobNoRestarts: a worker that failed stays as it is, and the others go on.
func vcJobNoRestarts(p *place) {
	p.nodes(1, 8, "")
	objects := p.golden("torchelastic-vcjob-no-restarts")
	p.apply(objects...)
	job := p.the("Job", objects)
	pods := p.running(2, job.GetNamespace(), workers)
	p.end(cluster.OutcomeFailed, pods[0])
	p.running(1, job.GetNamespace(), workers)
	p.remains("the other", func() error {
		all, err := p.pods(job.GetNamespace(), workers)
		if err != nil || len(all) != 2 || all[0].UID != pods[0].UID || all[0].Status.Phase != corev1.PodFailed {
			return fmt.Errorf("there are %d pods: %w", len(all), err)
		}
		return p.inPhase(job, "Running")
	})
	p.imported(objects, job)
	p.end(cluster.OutcomeSucceeded, pods[1])
	p.phase(job, "Failed")
}

// vcJobFatal: an exit code ends the job at once, although it survives failures.
func vcJobFatal(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 2}", "  failure: {restarts: 5, fatalExitCodes: [64]}")
	p.exit(64, p.running(2, p.namespace, workers)[1])
	p.phase(job, "Terminated")
	p.running(0, p.namespace, workers)
}

// exit has a pod fail with an exit code, in the kubelet's place.
func (p *place) exit(code int32, pod corev1.Pod) {
	p.Helper()
	now := metav1.NewTime(time.Now())
	pod.Status.Phase = corev1.PodFailed
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", FinishedAt: now,
		}}
	}
	pod.ResourceVersion = ""
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(p.Context(), &pod, metav1.UpdateOptions{})
	if err != nil {
		p.Fatal(err)
	}
}

// same checks that pods are the same.
func (p *place) same(before, after []corev1.Pod) {
	p.Helper()
	for i := range before {
		if before[i].UID != after[i].UID {
			p.Errorf("pod %s was made anew", before[i].Name)
		}
	}
}

// queue makes a Queue of Volcano and waits until it is open.
func (p *place) queue(name string) *unstructured.Unstructured {
	p.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"weight": int64(1)},
	}}
	p.apply(o)
	p.queueState(o, "Open")
	return o
}

func (p *place) queueState(queue *unstructured.Unstructured, want string) {
	p.Helper()
	p.eventually(fmt.Sprintf("queue %s to be %s", queue.GetName(), want), func() error {
		live, err := p.get(p.Context(), queue)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(live.Object, "status", "state"); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// priority makes a PriorityClass.
func (p *place) priority(name string, value int64) {
	p.Helper()
	p.apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": map[string]any{"name": name}, "value": value,
	}})
}

// bind gives claims a volume each, and makes those that are not there.
func (p *place) bind(namespace string, claims ...string) {
	p.Helper()
	core := p.client.CoreV1()
	for _, name := range claims {
		claim, err := core.PersistentVolumeClaims(namespace).Get(p.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			claim, err = core.PersistentVolumeClaims(namespace).Create(p.Context(), &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}, metav1.CreateOptions{})
		}
		if err != nil {
			p.Fatal(err)
		}
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + string(claim.UID)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: *claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes,
				Capacity: claim.Spec.Resources.Requests,
				ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name, UID: claim.UID},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"},
				},
			},
		}
		if _, err := core.PersistentVolumes().Create(p.Context(), volume, metav1.CreateOptions{}); err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() {
			if err := core.PersistentVolumes().Delete(context.WithoutCancel(p.Context()), volume.Name,
				metav1.DeleteOptions{}); err != nil {
				p.Error(err)
			}
		})
	}
}
