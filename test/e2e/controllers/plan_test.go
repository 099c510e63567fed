package controllers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/test/cluster"
)

// testPlan takes a fixture through its life with every overlay: applied, started where it is suspended, compared with
// its plan, its data fetched, and deleted as docs/remove.md says.
func (w *world) testPlan(t *testing.T, f *fixture) *counts {
	c := &counts{}
	for _, overlay := range overlays {
		b := f.bundles[overlay]
		objects := w.served(t, b)
		w.enter(t, b)
		w.checkFitsEmpty(t, b)
		w.apply(t, objects)
		c.count("bundles", 1)
		c.count("objects", len(objects))
		if slices.ContainsFunc(b.jobs, func(j *plan.Job) bool { return j.Suspended }) {
			w.awaitHeld(t, b)
			c.count("fields to start with", w.resume(t, b))
		}
		pods := w.awaitPods(t, b)
		c.count("pods", len(pods))
		w.checkAddresses(t, b, pods, c)
		w.checkRequests(t, b, peak, c)
		w.checkFitsRunning(t, b, pods, c)
		if w.finishHelpers(t, pods) > 0 {
			w.checkRequests(t, b, steady, c)
		}
		if overlay == "base" { // others change nothing about it
			w.checkUnready(t, b, pods, c)
		}
		w.remove(t, b, c)
	}
	t.Log(c)
	return c
}

// member is a pod with the place that it has in a plan.
type member struct {
	corev1.Pod
	job  *plan.Job
	set  *plan.PodSet
	want plan.Pod
}

// awaitPods waits until all pods of a bundle run, and no other.
func (w *world) awaitPods(t *testing.T, b *bundle) (members []member) {
	t.Helper()
	eventually(t, "the pods of "+b.namespace, func() (err error) {
		members, err = w.match(t, b, func(*plan.PodSet) bool { return true })
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s: %v", m.Name, m.Status.Phase, m.Status.Conditions)
			}
		}
		return nil
	})
	for _, m := range members {
		key, value, _ := strings.Cut(m.job.Selector, "=")
		if m.Labels[key] != value {
			t.Errorf("%s: %s does not select it: %v", m.Name, m.job.Selector, m.Labels)
		}
		if diff := cmp.Diff(m.set.Ports, portsOf(&m.Pod)); diff != "" {
			t.Errorf("%s: ports (-plan +pod):\n%s", m.Name, diff)
		}
	}
	return members
}

// match finds for every pod of the namespace the place in the plan, and an error unless all places of the sets are
// taken and no pod is without one.
func (w *world) match(t *testing.T, b *bundle, wanted func(*plan.PodSet) bool) ([]member, error) {
	list, err := w.c.Client().CoreV1().Pods(b.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods := list.Items
	var members []member
	for _, j := range b.jobs {
		for _, s := range j.PodSets {
			if !wanted(s) {
				continue
			}
			for _, want := range s.Pods {
				i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return isPod(&p, s, want.Name) })
				if i < 0 {
					return nil, fmt.Errorf("no pod is %s of %s", want.Name, s.Owner)
				}
				members = append(members, member{pods[i], j, s, want})
				pods = slices.Delete(pods, i, i+1)
			}
		}
	}
	for _, p := range pods {
		return nil, fmt.Errorf("the plan has no pod %s of %s", p.Name, ownerOf(&p))
	}
	return members, nil
}

// letters are those of names that Kubernetes makes up.
const letters = "[bcdfghjklmnpqrstvwxz2456789]"

func isPod(pod *corev1.Pod, s *plan.PodSet, name string) bool {
	pattern := regexp.QuoteMeta(name)
	pattern = strings.Replace(pattern, `-\*-\*`, "-"+letters+"{6,10}-"+letters+"{5}", 1)
	pattern = strings.Replace(pattern, `-\*`, "-"+letters+"{5}", 1)
	role := pod.Labels["app.kubernetes.io/component"]
	if role == "" {
		role = "pod"
	}
	return regexp.MustCompile("^"+pattern+"$").MatchString(pod.Name) && ownerOf(pod) == s.Owner && role == s.Role
}

// ownerOf is Kind/name of what made a pod, in the words of a plan.
func ownerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "Pod"
	case owner.Kind == "ReplicaSet":
		return "Deployment/" + owner.Name[:strings.LastIndexByte(owner.Name, '-')]
	}
	return owner.Kind + "/" + owner.Name
}

func portsOf(pod *corev1.Pod) []plan.Port {
	ports := []plan.Port{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			ports = append(ports, plan.Port{Name: p.Name, Port: p.ContainerPort, Protocol: string(p.Protocol)})
		}
	}
	return ports
}

// checkRequests holds the sums of a plan against what the cluster's quota counts.
func (w *world) checkRequests(t *testing.T, b *bundle, of func(*plan.Job) corev1.ResourceList, c *counts) {
	t.Helper()
	want := map[string]string{}
	for name := range total(b.jobs, peak) {
		want[string(quotaName(name))] = "0"
	}
	for name, q := range total(b.jobs, of) {
		want[string(quotaName(name))] = q.String()
	}
	maps.DeleteFunc(want, func(name, _ string) bool {
		return !b.counted(corev1.ResourceName(strings.TrimPrefix(name, "requests.")))
	})
	eventually(t, "the quota of "+b.namespace+" to count as the plan does", func() error {
		quota, err := w.c.Client().CoreV1().ResourceQuotas(b.namespace).Get(t.Context(), "count", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := map[string]string{}
		for name, q := range quota.Status.Used {
			if name != corev1.ResourcePods {
				got[string(name)] = q.String()
			}
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(sameQuantity)); diff != "" {
			return fmt.Errorf("(-plan +quota):\n%s", diff)
		}
		return nil
	})
	c.count("sums of requests", len(want))
}

// finishHelpers ends the pods that only fetch data, and says how many they were.
func (w *world) finishHelpers(t *testing.T, pods []member) (n int) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, cluster.OutcomeAnnotation, cluster.OutcomeSucceeded)
	for _, m := range pods {
		if m.set.Finishes {
			n++
			if _, err := w.c.Client().CoreV1().Pods(m.Namespace).Patch(t.Context(), m.Name, types.MergePatchType,
				[]byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// checkFitsEmpty asks the plan whether the bundle fits into the cluster's nodes. It will.
func (w *world) checkFitsEmpty(t *testing.T, b *bundle) {
	t.Helper()
	p := plan.New(b.jobs)
	p.Fit(readInventory(t, w.empty))
	for _, j := range b.jobs {
		if !j.Fit.Fits || len(j.Fit.Missing) > 0 {
			t.Errorf("%s does not fit into a cluster that has room for all: %+v", j.Name, j.Fit.Missing)
		}
	}
}

// checkFitsRunning gives the plan an inventory with the pods that run: it finds each on the node where it is.
func (w *world) checkFitsRunning(t *testing.T, b *bundle, pods []member, c *counts) {
	t.Helper()
	want := map[string][]string{}
	for _, m := range pods {
		want[m.Spec.NodeName] = append(want[m.Spec.NodeName], m.want.Name)
	}
	used := w.nodes[:0:0]
	for _, n := range w.nodes {
		if want[n.GetName()] != nil {
			used = append(used, n)
		}
	}
	p := plan.New(b.jobs)
	p.Fit(inventory(t, used, w.list(t, "v1", "Pod", b.namespace, "")))
	got := map[string][]string{}
	for _, j := range b.jobs {
		for _, s := range j.Fit.PodSets {
			if s.Running != s.Replicas || s.Placed != 0 {
				t.Errorf("%s: the plan finds %d of %d pods of %s running, and a new place for %d", j.Name, s.Running,
					s.Replicas, s.Role, s.Placed)
			}
		}
		for _, n := range j.Fit.Nodes {
			got[n.Name] = append(got[n.Name], n.Running...)
		}
	}
	for _, names := range slices.AppendSeq(slices.Collect(maps.Values(want)), maps.Values(got)) {
		slices.Sort(names)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods by node (-cluster +plan):\n%s", diff)
	}
	c.count("nodes", len(want))
}

func sameQuantity(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}
