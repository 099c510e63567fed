package operators

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

var jobSet = program{
	name: "JobSet", kinds: []string{"JobSet"}, definitions: []string{"jobsets.jobset.x-k8s.io/v1alpha2"},
	log: "jobset", controller: "app.kubernetes.io/name=jobset",
	probe: func(p *place) {
		objects := p.golden("torchelastic-jobset-suspended")
		p.apply(objects...)
		p.condition(p.the("JobSet", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", jobSetLife},
		{"pods as foretold", func(p *place) {
			p.nodes(4, 8, "")
			p.eachForetold("torchelastic-jobset-minimal", "torchelastic-jobset-etcd", "companion-jobset")
		}},
		{"enough have succeeded", jobSetEnough},
		{"failures", jobSetFails},
		{"disruptions", jobSetDisrupted},
		{"groups in order", jobSetOrdered},
		{"all made anew", jobSetRestarts},
		{"disruptions of all", jobSetUncounted},
		{"resized", jobSetResized},
		{"done, and expired", jobSetExpires},
		{"exclusive topology", jobSetExclusive},
		{"slices of JAX", jobSetSlices},
		{"changes as diff says", asDiffSays("jobset")},
		{"checkpoint, sidecar, spot", around("jobset")},
		{"managed elsewhere", elsewhere("JobSet", "jobset", "")},
	},
}

// jobSetLife: one field starts what is suspended, the pods have the names and the host names that the rendezvous needs,
// and their end is the set's. Whatever state it is in, import has nothing to say of it.
func jobSetLife(p *place) {
	p.nodes(2, 8, "")
	objects := p.golden("torchelastic-jobset-suspended")
	p.apply(objects...)
	set := p.the("JobSet", objects)
	p.condition(set, "Suspended")
	p.remains("no worker", func() error {
		pods, err := p.pods(set.GetNamespace(), workers)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there are %d pods of a suspended set", len(pods))
		}
		return err
	})
	if job := p.child(set); job.Spec.Suspend == nil || !*job.Spec.Suspend {
		p.Errorf("the Job of a suspended set is not suspended: %+v", job.Spec)
	}
	p.headless(set)
	p.imported(objects, set)
	p.set(set, false, "spec", "suspend")
	p.foretold("torchelastic-jobset-suspended")
	p.imported(objects, set)
	p.set(set, true, "spec", "suspend")
	p.running(0, set.GetNamespace(), workers)
	p.set(set, false, "spec", "suspend")
	p.end(cluster.OutcomeSucceeded, p.running(2, set.GetNamespace(), workers)...)
	p.condition(set, "Completed")
	p.imported(objects, set)
}

// child is the one Job of a set.
func (p *place) child(set *unstructured.Unstructured) *batchv1.Job {
	p.Helper()
	job, err := p.client.BatchV1().Jobs(set.GetNamespace()).Get(p.Context(), set.GetName()+"-worker-0",
		metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return job
}

// headless checks that the controller made a headless Service that publishes pods before they are ready.
func (p *place) headless(set *unstructured.Unstructured) {
	p.Helper()
	s, err := p.client.CoreV1().Services(set.GetNamespace()).Get(p.Context(), set.GetName(), metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if s.Spec.ClusterIP != corev1.ClusterIPNone || !s.Spec.PublishNotReadyAddresses {
		p.Errorf("the Service of a set is not headless, or hides pods that are not ready: %+v", s.Spec)
	}
}

// workersSet applies a JobSet with more of its spec, in lines that are indented by two.
func (p *place) workersSet(name, extra string) *unstructured.Unstructured {
	p.Helper()
	objects := p.rendered(name, `  target: jobset
  image: registry.example/resnet:1.0
  command: [python, train.py]
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}
`+extra)
	p.apply(objects...)
	return p.the("JobSet", objects)
}

// jobSetEnough: the set is done when as many workers as the minimum have succeeded, and the others go.
func jobSetEnough(p *place) {
	p.nodes(3, 8, "")
	objects := p.golden("torchelastic-jobset-minimal")
	p.apply(objects...)
	set := p.the("JobSet", objects)
	pods := p.running(3, set.GetNamespace(), workers)
	p.end(cluster.OutcomeSucceeded, pods[1])
	p.condition(set, "Completed")
	p.running(0, set.GetNamespace(), workers)
}

// jobSetFails: a failed pod is replaced under its host name, the set is not made anew, and one failure more than is
// allowed fails it.
func jobSetFails(p *place) {
	p.nodes(1, 0, "")
	set := p.workersSet("fails", "  workers: {replicas: 2}\n  failure: {restarts: 1}\n")
	before := p.running(2, p.namespace, workers)
	p.end(cluster.OutcomeFailed, before[0])
	var after []corev1.Pod
	p.eventually("the failed pod to be replaced", func() error {
		after = p.running(2, p.namespace, workers)
		if after[0].Name == before[0].Name {
			return fmt.Errorf("%s is still there", after[0].Name)
		}
		return nil
	})
	if after[0].Spec.Hostname != before[0].Spec.Hostname || after[1].Name != before[1].Name {
		p.Errorf("pods %s, %s are followed by %s, %s", before[0].Name, before[1].Name, after[0].Name, after[1].Name)
	}
	p.end(cluster.OutcomeFailed, after[1])
	p.condition(set, "Failed")
	p.running(0, p.namespace, workers)
	if n, _, _ := unstructured.NestedInt64(p.live(set).Object, "status", "restarts"); n != 0 {
		p.Errorf("the set was made anew %d times, and it has no failure policy", n)
	}
}

// jobSetDisrupted: a pod that is evicted is replaced and does not count as a failure.
func jobSetDisrupted(p *place) {
	p.nodes(1, 0, "")
	set := p.workersSet("evicted", "  workers: {replicas: 2}\n  failure: {restarts: 0}\n")
	for range 2 {
		pod := p.running(2, p.namespace, workers)[0]
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
			LastTransitionTime: metav1.Now(), // an old one is taken back
		})
		if _, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(p.Context(), &pod,
			metav1.UpdateOptions{}); err != nil {
			p.Fatal(err)
		}
		p.end(cluster.OutcomeFailed, pod)
		p.eventually("the evicted pod to be replaced", func() error {
			pods := p.running(2, p.namespace, workers)
			if slices.ContainsFunc(pods, func(now corev1.Pod) bool { return now.UID == pod.UID }) {
				return fmt.Errorf("%s is still there", pod.Name)
			}
			return nil
		})
	}
	if failed := p.child(set).Status.Failed; failed != 0 {
		p.Errorf("%d disruptions count as failures", failed)
	}
}

// jobSetResized: the webhook refuses another number of workers, since the feature ElasticJobSet is off by default.
func jobSetResized(p *place) {
	set := p.workersSet("resized", "  workers: {replicas: 2, min: 1, max: 4}\n  suspend: true\n")
	p.condition(set, "Suspended")
	live := p.live(set)
	jobs, _, _ := unstructured.NestedSlice(live.Object, "spec", "replicatedJobs")
	child, _ := jobs[0].(map[string]any)
	for _, field := range []string{"parallelism", "completions"} {
		if err := unstructured.SetNestedField(child, int64(3), "template", "spec", field); err != nil {
			p.Fatal(err)
		}
	}
	err := p.trySet(set, jobs, "spec", "replicatedJobs")
	if err == nil || !strings.Contains(err.Error(), "immutable") {
		p.Errorf("setting the number of workers: got %v, want an error with %q", err, "immutable")
	}
}

// jobSetExpires: a set that is done is deleted when its time is up, with its Job and its pods.
func jobSetExpires(p *place) {
	p.nodes(1, 0, "")
	set := p.workersSet("expires", "  workers: {replicas: 2}\n  ttlAfterFinished: 5s\n")
	p.end(cluster.OutcomeSucceeded, p.running(2, p.namespace, workers)...)
	p.condition(set, "Completed")
	p.eventually("the set to be deleted", func() error {
		_, err := p.get(p.Context(), set)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("it is there")
		}
		return err
	})
	p.gone(p.namespace)
}
