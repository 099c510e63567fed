package gang

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestDryRunDevicesOfGroup places two gangs of a group. The largest pod of each claims more devices than the node has,
// so the second gang meets a kind of pod for which the first gang found no room.
func TestDryRunDevicesOfGroup(t *testing.T) {
	for available, want := range map[int]string{
		4: "g-1 on x, g-2 on x, h-1 on x, h-2 on x",
		3: "gang a/h needs 2 pods at once and has room for 1, none for pod h-0: 1 cannot allocate all claims",
	} {
		t.Run(fmt.Sprint(available), func(t *testing.T) {
			objects := []runtime.Object{deviceClasses(), devices("x", available)}
			var pods []*corev1.Pod
			for _, name := range []string{"g", "h"} {
				gang := workers(name, 3, 2, 0, claiming, inGroup)
				for i, count := range []int{8, 1, 1} {
					gang[i].Labels["app"] = "same"
					objects = append(objects, generate(gang[i], count))
				}
				pods = append(pods, gang...)
			}
			g := newPlugin(t, []*corev1.Node{machine("x", 0)}, nil, objects...)
			for _, p := range pods {
				g.shared.seen(nil, p)
			}
			if got := placed(t, g, pods); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		})
	}
}

// TestRefusedClaim: a claim that is being deleted keeps its own pod from a place, not others with an equal claim.
func TestRefusedClaim(t *testing.T) {
	gang := workers("g", 2, 1, 0, claiming)
	deleted := generate(gang[0], 1)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/wait"}
	g := newPlugin(t, []*corev1.Node{machine("x", 0)}, nil, deviceClasses(), devices("x", 8), deleted,
		generate(gang[1], 1))
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if got := placed(t, g, gang); got != "g-1 on x" {
		t.Errorf("there are devices for g-1: %s", got)
	}
}

// filterCounter counts how often the filters run on a node.
type filterCounter struct {
	framework.Framework
	runs atomic.Int32
}

func (f *filterCounter) RunFilterPluginsWithNominatedPods(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo,
) *fwk.Status {
	f.runs.Add(1)
	return f.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
}

// TestPreemptionForDevicesFiltersOnce: if evictions make no room for one pod of a gang, the search for victims is not
// repeated for each of the others.
func TestPreemptionForDevicesFiltersOnce(t *testing.T) {
	const members, nodes = 5, 3
	gang := workers("g", members, members, 1, claiming)
	objects := []runtime.Object{deviceClasses()}
	for _, p := range gang {
		objects = append(objects, generate(p, 8))
	}
	var machines []*corev1.Node
	var running []*corev1.Pod
	for i := range nodes {
		name := fmt.Sprintf("n-%d", i)
		machines = append(machines, machine(name, members))
		running = append(running, worker("low-"+name, "", 0, members, name, 1))
		objects = append(objects, devices(name, 7)) // one too few
	}
	g := newPlugin(t, machines, running, objects...)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	filters := &filterCounter{Framework: g.profile}
	g.profile = filters
	if got := evicted(t, g, gang[0]); got != "-" {
		t.Errorf("evictions free no devices, but they are planned: %s", got)
	}
	if got := filters.runs.Load(); got != nodes {
		t.Errorf("the filters of %d pods on %d nodes run %d times, want once on each node", members, nodes, got)
	}
}

// TestVictimsOfEqualClaims: what is known of the victims for one pod holds for the next with the same claims only while
// there are devices left.
func TestVictimsOfEqualClaims(t *testing.T) {
	for name, c := range map[string]struct {
		devices []runtime.Object
		claimed int
		want    []string
	}{
		"a node each":              {[]runtime.Object{devices("x", 8), devices("y", 8)}, 8, []string{"low-x low-y"}},
		"both on one node":         {[]runtime.Object{devices("x", 8), devices("y", 8)}, 4, []string{"low-x", "low-y"}},
		"devices of one node only": {[]runtime.Object{devices("x", 8)}, 8, []string{"-"}},
		"a pool for both":          {[]runtime.Object{anywhere("pool", 8)}, 4, []string{"low-x", "low-y"}},
		"a pool for one":           {[]runtime.Object{anywhere("pool", 8)}, 5, []string{"-"}},
	} {
		t.Run(name, func(t *testing.T) {
			running := []*corev1.Pod{worker("low-x", "", 0, 2, "x", 1), worker("low-y", "", 0, 2, "y", 1)}
			gang := workers("g", 2, 2, 1, claiming)
			objects := append(c.devices, deviceClasses(), generate(gang[0], c.claimed), generate(gang[1], c.claimed))
			g := newPlugin(t, []*corev1.Node{machine("x", 2), machine("y", 2)}, running, objects...)
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			if got := evicted(t, g, gang[0]); !slices.Contains(c.want, got) {
				t.Errorf("want any of %q, got %q", c.want, got)
			}
		})
	}
}
