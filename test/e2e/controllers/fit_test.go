package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/test/cluster"
)

// fits are jobs of one kind of pods, for which a plan's answer is exact, on nodes of their own.
var fits = []struct {
	name   string
	nodes  cluster.NodeOptions
	cordon bool   // the last of the nodes
	spec   string // of the job, after image and command
	placed int    // how many pods find a place
}{
	{"exactly", cluster.NodeOptions{Count: 2, GPUs: 4}, false, "workers: {replicas: 4}, resources: {gpu: 2, cpu: 1, " +
		"memory: 4Gi}", 4},
	{"gpus-left-over", cluster.NodeOptions{Count: 2, GPUs: 3}, false, "workers: {replicas: 3}, resources: {gpu: 2, " +
		"cpu: 1, memory: 4Gi}", 2},
	{"minimum-only", cluster.NodeOptions{Count: 1, GPUs: 3}, false, "workers: {min: 2, max: 4}, resources: {gpu: 1, " +
		"cpu: 1, memory: 4Gi}", 3},
	{"cpu", cluster.NodeOptions{Count: 2, GPUs: 8, CPU: "9"}, false, "workers: {replicas: 4}, resources: {gpu: 1, " +
		"cpu: 5, memory: 4Gi}", 2},
	{"memory", cluster.NodeOptions{Count: 2, GPUs: 8, Memory: "100Gi"}, false, "workers: {replicas: 4}, resources: " +
		"{gpu: 1, memory: 50Gi, cpu: 1}", 4},
	{"pods", cluster.NodeOptions{Count: 2, GPUs: 8, Pods: 1}, false, "workers: {replicas: 3}, resources: {gpu: 1, " +
		"cpu: 1, memory: 4Gi}", 2},
	{"cordoned", cluster.NodeOptions{Count: 2, GPUs: 1}, true, "workers: {replicas: 2}, resources: {gpu: 1, cpu: 1, " +
		"memory: 4Gi}", 1},
	{"tainted", cluster.NodeOptions{Count: 2, GPUs: 1, Taints: []corev1.Taint{{
		Key: "team", Value: "other",
		Effect: corev1.TaintEffectNoSchedule,
	}}}, false, "workers: {replicas: 2}, resources: {gpu: 1, cpu: 1, " +
		"memory: 4Gi}", 0},
	{"host-ports", cluster.NodeOptions{Count: 2, GPUs: 8}, false, "workers: {replicas: 3}, resources: {gpu: 1, " +
		"cpu: 1, memory: 4Gi}, network: {host: true}", 2},
}

// inSchedulersWords are a plan's reasons as the scheduler's events have them.
var inSchedulersWords = strings.NewReplacer(
	"insufficient", "Insufficient", "too many pods", "Too many pods", "cordoned", "node(s) were unschedulable",
	"taint team=other:NoSchedule", "node(s) had untolerated taint(s)",
	"port 29400 of the node is taken", "node(s) didn't have free ports for the requested pod ports",
)

// testFit asks the plan of jobs, some of them too large, how many pods find a place, and then the scheduler.
func (w *world) testFit(t *testing.T) {
	var c counts
	for _, tt := range fits {
		t.Run(tt.name, func(t *testing.T) {
			tt.nodes.Labels = map[string]string{"fit": tt.name}
			tt.nodes.Other = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Ti")}
			names, err := w.c.AddNodes(t.Context(), tt.nodes)
			if err != nil {
				t.Fatal(err)
			}
			if tt.cordon {
				patch := []byte(`{"spec":{"unschedulable":true}}`)
				if _, err := w.c.Client().CoreV1().Nodes().Patch(t.Context(), names[len(names)-1], types.MergePatchType,
					patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			f := &fixture{
				name: "fit-" + tt.name,
				text: []byte(`{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, metadata: {name: ` + tt.name +
					`}, spec: {image: 'x:1', command: [x], placement: {nodeSelector: {fit: ` + tt.name + `}}, ` +
					tt.spec +
					`}}`),
			}
			b := must(f.render("base", f.name))(t)
			w.enter(t, b)
			w.checkFit(t, b, tt.placed, &c)
		})
	}
	t.Logf("in all: %s", &c)
}

func (w *world) checkFit(t *testing.T, b *bundle, placed int, c *counts) {
	nodes := w.list(t, "v1", "Node", "", "fit="+b.jobs[0].Name)
	fitOf := func(inv *plan.Inventory) (*plan.Fit, plan.SetFit) {
		p := plan.New(b.jobs)
		p.Fit(inv)
		return p.Jobs[0].Fit, p.Jobs[0].Fit.PodSets[0]
	}
	before, set := fitOf(inventory(t, nodes))
	if int(set.Placed) != placed || before.Fits != (set.Placed >= set.Required) {
		t.Errorf("the plan has a place for %d and fits %t, want %d of %d required", set.Placed, before.Fits, placed,
			set.Required)
	}
	w.apply(t, b.objects)
	var refused string
	eventually(t, "the scheduler to decide of each pod", func() error {
		here := 0
		refused = ""
		members, err := w.match(t, b, func(*plan.PodSet) bool { return true })
		for _, m := range members {
			reason := refusal(&m.Pod)
			if refused += reason; m.Spec.NodeName != "" {
				here++
			} else if reason == "" {
				return fmt.Errorf("%s is neither placed nor refused", m.Name)
			}
		}
		if err == nil && here != placed {
			err = fmt.Errorf("%d pods are on nodes, want %d: %s", here, placed, refused)
		}
		return err
	})
	for _, missing := range before.Missing {
		for _, r := range missing.Reasons {
			want := fmt.Sprintf("%d %s", r.Nodes, inSchedulersWords.Replace(r.Reason))
			// The scheduler looks at taints first, and so counts nodes of other pools.
			if strings.HasPrefix(r.Reason, "taint ") {
				_, want, _ = strings.Cut(want, " ")
			}
			if !strings.Contains(refused, want) {
				t.Errorf("the plan says %d nodes: %s; the scheduler does not say %q: %s", r.Nodes, r.Reason, want,
					refused)
			}
			c.count("reasons", 1)
		}
	}
	after, now := fitOf(inventory(t, nodes, w.list(t, "v1", "Pod", b.namespace, "")))
	if int(now.Running) != placed || now.Placed != 0 || after.Fits != before.Fits {
		t.Errorf("with the pods that run, the plan has %+v and fits %t, as %d run and it was %t before",
			now, after.Fits, placed, before.Fits)
	}
	c.count("jobs", 1)
	c.count("pods placed", placed)
	c.count("pods refused", int(set.Replicas)-placed)
}

// refusal is what the scheduler says of a pod that it finds no place for.
func refusal(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message + "\n"
		}
	}
	return ""
}
