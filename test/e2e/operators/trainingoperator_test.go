package operators

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

var trainingOperator = program{
	name: "Kubeflow Training Operator", kinds: []string{"PyTorchJob"},
	definitions: []string{"pytorchjobs.kubeflow.org/v1"},
	log:         "training-operator", controller: "control-plane=kubeflow-training-operator",
	probe: func(p *place) {
		objects := p.golden("torchelastic-pytorchjob-suspended")
		p.apply(objects...)
		p.condition(p.the("PyTorchJob", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", pyTorchJobLife},
		{"pods as foretold", func(p *place) {
			p.nodes(6, 8, "")
			p.eachForetold("torchelastic-pytorchjob", "torchelastic-pytorchjob-master", "companion-pytorchjob")
		}},
		{"elastic", pyTorchJobElastic},
		{"master", pyTorchJobMaster},
		{"restarted without end", pyTorchJobEndless},
		{"restarts", pyTorchJobRestarts},
		{"deadline", pyTorchJobDeadline},
		{"expiry", pyTorchJobExpiry},
		{"refusals", pyTorchJobRefusals},
		{"changes as diff says", asDiffSays("pytorchjob")},
		{"checkpoint, sidecar, spot", around("pytorchjob")},
		{"managed elsewhere", elsewhere("PyTorchJob", "pytorchjob", "")},
	},
}

// pyTorchJobLife: one field starts and stops it, the pods have the operator's names and Services, torchrun's variables
// are the operator's behind ours, and the first worker that is done ends the job, which deletes what still runs.
func pyTorchJobLife(p *place) {
	p.nodes(2, 8, "")
	objects := p.golden("torchelastic-pytorchjob-suspended")
	p.apply(objects...)
	job := p.the("PyTorchJob", objects)
	ns := job.GetNamespace()
	p.condition(job, "Suspended")
	p.remains("no worker", func() error { return p.placed(ns, 0) })
	p.set(job, false, "spec", "runPolicy", "suspend")
	pods := p.running(2, ns, workers)
	p.named(pods, "resnet-suspended-worker-0", "resnet-suspended-worker-1")
	p.reached(pods)
	for _, pod := range pods {
		p.behind(pod, "pytorch", []string{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "HOME"})
		p.have(pod, "pytorch", map[string]string{
			"PET_RDZV_ENDPOINT": "resnet-suspended-worker-0:29400", "PET_RDZV_BACKEND": "c10d",
			"PET_RDZV_ID": "resnet-suspended", "PET_NNODES": "2:2", "PET_MAX_RESTARTS": "3", "PET_NPROC_PER_NODE": "1",
			"PET_RDZV_CONF": "join_timeout=600,last_call_timeout=30", "PYTHONUNBUFFERED": "1",
			"MASTER_ADDR": "-", "RANK": "-", "WORLD_SIZE": "-", "PET_STANDALONE": "-", "PET_NODE_RANK": "-",
		})
	}
	p.set(job, true, "spec", "runPolicy", "suspend")
	p.gone(ns)
	p.condition(job, "Suspended")
	p.set(job, false, "spec", "runPolicy", "suspend")
	pods = p.running(2, ns, workers)
	p.imported(objects, job)
	p.end(cluster.OutcomeSucceeded, pods[1])
	p.condition(job, "Succeeded")
	p.left(ns, "resnet-suspended-worker-1")
	p.imported(objects, job)
}

// pyTorchJobElastic: other replicas change no pod that runs, and the autoscaler is the one that the job asks for.
func pyTorchJobElastic(p *place) {
	p.nodes(4, 8, "")
	objects := p.golden("torchelastic-pytorchjob")
	p.apply(objects...)
	job := p.the("PyTorchJob", objects)
	ns := job.GetNamespace()
	before := p.running(3, ns, workers)
	for _, pod := range before {
		p.have(pod, "pytorch", map[string]string{"PET_NNODES": "1:4", "PET_NPROC_PER_NODE": "2"})
	}
	p.set(job, int64(4), "spec", "pytorchReplicaSpecs", "Worker", "replicas")
	pods := p.running(4, ns, workers)
	p.same(before, pods[:3])
	p.reached(pods)
	p.set(job, int64(2), "spec", "pytorchReplicaSpecs", "Worker", "replicas")
	pods = p.running(2, ns, workers)
	p.same(before[:2], pods)
	p.autoscaled(job)
	p.imported(objects, job)
}

// autoscaled checks the autoscaler of torchelastic-pytorchjob, and that it is the only one.
func (p *place) autoscaled(job *unstructured.Unstructured) {
	p.Helper()
	p.eventually("one autoscaler", func() error {
		list, err := p.client.AutoscalingV2().HorizontalPodAutoscalers(job.GetNamespace()).List(p.Context(),
			metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		spec := list.Items[0].Spec
		want := autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(),
			},
			MinReplicas: new(int32(1)), MaxReplicas: 4,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80)),
					},
				},
			}},
		}
		if diff := cmp.Diff(want, spec); diff != "" {
			return fmt.Errorf("it is otherwise (-want +got):\n%s", diff)
		}
		return nil
	})
}

// pyTorchJobMaster: the operator's variables reach every pod and win over ours, workers wait for the Master's name, and
// the Master's end is the job's.
func pyTorchJobMaster(p *place) {
	p.nodes(3, 8, "")
	objects := p.golden("torchelastic-pytorchjob-master")
	job := p.the("PyTorchJob", objects)
	ns := job.GetNamespace()
	for _, role := range []string{"Master", "Worker"} {
		setEnv(p, job, "pytorchReplicaSpecs", role, "RANK", "HOME")
	}
	p.apply(objects...)
	pods := p.running(3, ns, workers)
	p.named(pods, "mnist-master-master-0", "mnist-master-worker-0", "mnist-master-worker-1")
	p.reached(pods)
	for i, pod := range pods {
		p.behind(pod, "pytorch", []string{"RANK", "HOME"})
		p.have(pod, "pytorch", map[string]string{
			"MASTER_ADDR": "mnist-master-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": fmt.Sprint(i),
			"PET_NODE_RANK": fmt.Sprint(i), "PET_NNODES": "3", "PET_RDZV_ENDPOINT": "-", "PET_RDZV_BACKEND": "-",
		})
		first := pod.Spec.InitContainers
		if waits := len(first) == 1 && first[0].Name == "init-pytorch"; waits != (i > 0) {
			p.Errorf("pod %s has %d init containers", pod.Name, len(first))
		}
	}
	p.end(cluster.OutcomeSucceeded, pods[0])
	p.condition(job, "Succeeded")
	p.left(ns, "mnist-master-master-0")
}

// pyTorchJobEndless: failed pods are made again whatever their number, and all pods stay when the job is over.
func pyTorchJobEndless(p *place) {
	p.nodes(2, 8, "")
	objects := p.golden("torchelastic-pytorchjob-endless")
	p.apply(objects...)
	job := p.the("PyTorchJob", objects)
	ns := job.GetNamespace()
	for range 8 { // more than the default of failure.restarts
		failed := p.running(2, ns, workers)[1]
		p.end(cluster.OutcomeFailed, failed)
		p.remade(failed)
	}
	pods := p.running(2, ns, workers)
	p.restarted(100, pods...)
	p.end(cluster.OutcomeSucceeded, pods[0])
	p.condition(job, "Succeeded")
	p.remains("all pods", func() error { return p.placed(ns, 2) })
}

// pyTorchJobRestarts: containers that their node starts again count, and at the limit the job has failed. Pods that
// failed as a whole, as those evicted, count for nothing.
func pyTorchJobRestarts(p *place) {
	p.nodes(2, 8, "")
	objects := p.pyTorchJob("limited", "  failure: {restarts: 2}\n")
	p.apply(objects...)
	job := p.the("PyTorchJob", objects)
	for range 3 {
		failed := p.running(2, p.namespace, workers)[1]
		p.end(cluster.OutcomeFailed, failed)
		p.remade(failed)
	}
	pods := p.running(2, p.namespace, workers)
	p.restarted(1, pods[0])
	p.remains("the job", func() error { return p.placed(p.namespace, 2) })
	p.restarted(1, pods[1])
	p.condition(job, "Failed")
	p.gone(p.namespace)
	p.imported(objects, job)
}

func pyTorchJobDeadline(p *place) {
	p.nodes(2, 8, "")
	objects := p.pyTorchJob("late", "  failure: {deadline: 5s}\n")
	p.apply(objects...)
	p.missesDeadline(p.the("PyTorchJob", objects), 2)
}

// pyTorchJobExpiry: a job that is over is deleted when its time to live is.
func pyTorchJobExpiry(p *place) {
	p.nodes(2, 8, "")
	objects := p.pyTorchJob("brief", "  ttlAfterFinished: 5s\n")
	p.apply(objects...)
	job := p.the("PyTorchJob", objects)
	p.end(cluster.OutcomeSucceeded, p.running(2, p.namespace, workers)[0])
	p.condition(job, "Succeeded")
	p.vanishes(job)
}

// pyTorchJobRefusals: the webhook is asked, and refuses what tegen never renders.
func pyTorchJobRefusals(p *place) {
	objects := p.pyTorchJob("wrong", "")
	job := p.the("PyTorchJob", objects)
	workersOf, _, _ := unstructured.NestedMap(job.Object, "spec", "pytorchReplicaSpecs")
	job.Object["spec"].(map[string]any)["pytorchReplicaSpecs"] = map[string]any{"Master": workersOf["Worker"]}
	p.refused(job, "must be configured if elastic policy is used")
	p.refused(job, "must be 1")
}

// pyTorchJob renders two workers with more in their spec.
func (p *place) pyTorchJob(name, more string) []*unstructured.Unstructured {
	p.Helper()
	return p.rendered(name, `  target: pytorchjob
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2}
`+more)
}

// left waits until no pods but these are in a namespace.
func (p *place) left(namespace string, want ...string) {
	p.Helper()
	p.eventually(fmt.Sprintf("no pods but %v", want), func() error {
		pods, err := p.pods(namespace, "")
		if err != nil {
			return err
		}
		if len(pods) != len(want) {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	pods, err := p.pods(namespace, "")
	if err != nil {
		p.Fatal(err)
	}
	p.named(pods, want...)
}

// remade waits until another pod has the name of this one.
func (p *place) remade(old corev1.Pod) {
	p.Helper()
	p.eventually("another pod "+old.Name, func() error {
		pod, err := p.client.CoreV1().Pods(old.Namespace).Get(p.Context(), old.Name, metav1.GetOptions{})
		if err == nil && (pod.UID == old.UID || pod.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("it is %s, created %v", pod.Status.Phase, pod.CreationTimestamp.Format(time.TimeOnly))
		}
		return err
	})
}
