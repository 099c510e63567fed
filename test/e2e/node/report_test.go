package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	reportedPods   = 24
	reportedEvents = 40
	reportedLines  = 40 // of a container
	reportedWords  = 60
)

// report says what explains a failure: the pods, those that are gone too, what the cluster said of them, and what each
// printed last.
func (j *testJob) report() {
	var b strings.Builder
	states := j.pods.states()
	names := map[string]bool{}
	for _, pod := range states {
		names[pod.Name] = true
	}
	for _, pod := range states[max(0, len(states)-reportedPods):] {
		fmt.Fprintf(&b, "%s\n", describePod(pod))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	list, err := j.client.CoreV1().Events(j.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&b, "listing events: %v\n", err)
	} else {
		b.WriteString(describeEvents(list.Items, j.name, names))
	}
	j.t.Logf("%s failed after %v. Pods, events, and what each container printed last:\n%s%s",
		j.name, time.Since(j.applied).Round(time.Second), &b, j.last(reportedLines))
}

// timeline is what programs said beside their steps, in the order of their clocks: who joined which world, and who was
// lost. It tells where the time of a recovery went.
func timeline(events []event, start time.Time) string {
	said := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.Event == "step" })
	slices.SortStableFunc(said, func(a, b event) int { return cmp.Compare(a.Time, b.Time) })
	var b strings.Builder
	for _, e := range said[:min(len(said), reportedWords)] {
		fmt.Fprintf(&b, "+%5.1f s %s %s", e.at().Sub(start).Seconds(), e.Pod, e.Event)
		if e.Size > 0 {
			fmt.Fprintf(&b, " as rank %d of %d at step %d", e.Rank, e.Size, e.Step)
		}
		if why := e.Fields["error"]; why != nil {
			fmt.Fprintf(&b, ": %.150s", why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// describeEvents has the last events of a job's pods and objects, one a line.
func describeEvents(all []corev1.Event, job string, pods map[string]bool) string {
	when := func(e corev1.Event) time.Time {
		if e.LastTimestamp.IsZero() {
			return e.EventTime.Time
		}
		return e.LastTimestamp.Time
	}
	var of []corev1.Event
	for _, e := range all {
		if name := e.InvolvedObject.Name; pods[name] || name == job || strings.HasPrefix(name, job+"-") {
			of = append(of, e)
		}
	}
	slices.SortFunc(of, func(a, b corev1.Event) int { return cmp.Compare(when(a).UnixMicro(), when(b).UnixMicro()) })
	var b strings.Builder
	for _, e := range of[max(0, len(of)-reportedEvents):] {
		fmt.Fprintf(&b, "%s %s %s %s (%d): %.300s\n", when(e).Format(time.TimeOnly), e.InvolvedObject.Kind,
			e.InvolvedObject.Name, e.Reason, e.Count, e.Message)
	}
	return b.String()
}

// describePod is a pod's state in a line.
func describePod(pod *corev1.Pod) string {
	words := []string{pod.Name, string(pod.Status.Phase), "on " + cmp.Or(pod.Spec.NodeName, "no node")}
	if pod.DeletionTimestamp != nil {
		words = append(words, "going")
	}
	if pod.Status.Reason != "" {
		words = append(words, pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			words = append(words, c.Reason+":", c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		words = append(words, fmt.Sprintf("[%s %s, %d restarts]", c.Name, describeState(c), c.RestartCount))
	}
	return strings.Join(words, " ")
}

func describeState(c corev1.ContainerStatus) string {
	switch state := c.State; {
	case state.Running != nil && c.Ready:
		return "ready"
	case state.Running != nil:
		return "running"
	case state.Terminated != nil:
		return fmt.Sprintf("ended with %d %s", state.Terminated.ExitCode, state.Terminated.Reason)
	case state.Waiting != nil:
		return "waits: " + state.Waiting.Reason + " " + state.Waiting.Message
	}
	return "unknown"
}

// reportPods says how the pods of a namespace are, and what they printed last.
func (w *world) reportPods(t *testing.T, namespace string) {
	for _, args := range [][]string{
		{"describe", "pods", "-n", namespace},
		{"logs", "-n", namespace, "--selector=app.kubernetes.io/part-of=tegen", "--prefix", "--tail=40"},
	} {
		out, err := w.tryKubectl(context.WithoutCancel(t.Context()), args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
