package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// exec runs a command in a pod's first container.
func (j *testJob) exec(pod string, command ...string) string {
	j.t.Helper()
	return j.kubectl(j.t, append([]string{"exec", "-n", j.namespace, pod, "--"}, command...)...)
}

// pod reads a pod.
func (j *testJob) pod(name string) *corev1.Pod {
	j.t.Helper()
	pod, err := j.client.CoreV1().Pods(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatalf("reading pod %s: %v", name, err)
	}
	return pod
}

// podsOf lists the job's pods of a component ("worker", "etcd", "rendezvous"), or all, by name.
func (j *testJob) podsOf(component string) []corev1.Pod {
	j.t.Helper()
	selector := instance + "=" + j.name
	if component != "" {
		selector += "," + componentLabel + "=" + component
	}
	list, err := j.client.CoreV1().Pods(j.namespace).List(j.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		j.t.Fatalf("listing the pods of %s: %v", j.name, err)
	}
	return list.Items
}

// deletePod deletes a pod with a grace period in seconds, and returns when that was asked and which pod it was. With
// none, the kubelet still sends SIGTERM and kills a second later, the least that it gives; the API forgets the pod at
// once, or one of a Job's when the Job has counted it. It does not wait.
func (j *testJob) deletePod(name string, grace int64) (at time.Time, uid types.UID) {
	j.t.Helper()
	uid = j.pod(name).UID
	at = time.Now()
	options := metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := j.client.CoreV1().Pods(j.namespace).Delete(j.t.Context(), name, options); err != nil {
		j.t.Fatalf("deleting pod %s: %v", name, err)
	}
	j.logf("deleted %s with a grace of %d s", name, grace)
	return at, uid
}

// awaitGone waits until a pod is no more, or another has its name.
func (j *testJob) awaitGone(name string, uid types.UID, within time.Duration) {
	j.t.Helper()
	eventually(j.t, "pod "+name+" to go", within, func() error {
		pod, err := j.client.CoreV1().Pods(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.UID != uid:
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is there: %s", describePod(pod))
	})
}

// awaitReplaced waits until a running pod of another UID has the place of one: its name, or its index of an Indexed
// Job.
func (j *testJob) awaitReplaced(old *corev1.Pod, within time.Duration) (pod *corev1.Pod) {
	j.t.Helper()
	index := old.Labels[batchv1.JobCompletionIndexAnnotation]
	eventually(j.t, "another pod in the place of "+old.Name, within, func() error {
		var seen []string
		for _, p := range j.podsOf(old.Labels[componentLabel]) {
			if p.UID == old.UID || p.Name != old.Name &&
				(index == "" || p.Labels[batchv1.JobCompletionIndexAnnotation] != index) {
				continue
			}
			if p.Status.Phase == corev1.PodRunning {
				pod = &p
				return nil
			}
			seen = append(seen, describePod(&p))
		}
		return fmt.Errorf("there is none that runs, but %v", seen)
	})
	return pod
}

// awaitComplete waits for a Job to complete; one that fails is not waited for.
func (j *testJob) awaitComplete(name string, within time.Duration) (at time.Time) {
	j.t.Helper()
	eventually(j.t, "Job "+name+" to complete", within, func() error {
		of, err := j.client.BatchV1().Jobs(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range of.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				j.t.Fatalf("Job %s failed: %s: %s", name, c.Reason, c.Message)
			}
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				at = c.LastTransitionTime.Time
				return nil
			}
		}
		return fmt.Errorf("%d active, %d succeeded, %d failed", of.Status.Active, of.Status.Succeeded, of.Status.Failed)
	})
	return at
}

// awaitReady waits until all pods of a component, and at least one, are ready, and returns when they were.
func (j *testJob) awaitReady(component string) (at time.Time) {
	j.t.Helper()
	eventually(j.t, "the "+component+" of "+j.name+" to be ready", patience, func() error {
		pods := j.podsOf(component)
		if len(pods) == 0 {
			return errors.New("there is no such pod")
		}
		for _, pod := range pods {
			if !ready(&pod) {
				return errors.New(describePod(&pod))
			}
		}
		return nil
	})
	return time.Now()
}

// ready says whether a pod is.
func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
