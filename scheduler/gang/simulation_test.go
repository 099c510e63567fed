package gang

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/random"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// idle stands in for what the scheduler's queue does with pods that were nominated or activated: nothing.
type idle struct{}

func (idle) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (idle) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (idle) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (idle) NominatedPodsForNode(string) []fwk.PodInfo                     { return nil }
func (idle) Activate(klog.Logger, map[string]*corev1.Pod)                  {}

// leading is the election of a process that leads.
func leading() *Election {
	e := &Election{}
	e.Skip()
	return e
}

// newPlugin is the plugin of the default profile over a snapshot, with kube-scheduler's own filters.
func newPlugin(t testing.TB, nodes []*corev1.Node, pods []*corev1.Pod, others ...runtime.Object) *Gang {
	t.Helper()
	return newPluginOf(t, func(*schedconfig.KubeSchedulerProfile) {}, idle{}, nodes, pods, others...)
}

// newPluginOf is the plugin of the default profile with a change, where some pods are nominated.
func newPluginOf(
	t testing.TB, change func(*schedconfig.KubeSchedulerProfile), nominated fwk.PodNominator,
	nodes []*corev1.Node, pods []*corev1.Pod, others ...runtime.Object,
) *Gang {
	t.Helper()
	metrics.Register() // which NewFramework counts in
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(config.Default("x")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	profile := obj.(*schedconfig.KubeSchedulerConfiguration).Profiles[0]
	change(&profile)
	registry := plugins.NewInTreeRegistry()
	var plugin *Gang
	registered := Plugins(componentmetrics.NewKubeRegistry(), leading())
	for name, f := range map[string]frameworkruntime.PluginFactory{
		random.Name: random.New,
		GateName:    registered[GateName],
		Name: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := registered[Name](ctx, args, h)
			if err == nil {
				plugin = p.(*Gang)
			}
			return p, err
		},
	} {
		if err := registry.Register(name, f); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewClientset(others...)
	shared := informers.NewSharedInformerFactory(client, 0)
	dra, synced := newDRAManager(t, client, shared)
	waiting := frameworkruntime.NewWaitingPodsMap()
	_, err = frameworkruntime.NewFramework(t.Context(), registry, &profile,
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(shared),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, nodes)),
		frameworkruntime.WithSharedDRAManager(dra),
		frameworkruntime.WithPodNominator(nominated),
		frameworkruntime.WithPodActivator(idle{}), frameworkruntime.WithWaitingPods(waiting),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()))
	if err != nil {
		t.Fatal(err)
	}
	shared.Start(t.Context().Done())
	shared.WaitForCacheSync(t.Context().Done())
	synced()
	for _, p := range pods {
		plugin.shared.seen(nil, p)
	}
	return plugin
}

// machine is a node with a number of GPUs.
func machine(name string, gpus int, with ...func(*corev1.Node)) *corev1.Node {
	list := corev1.ResourceList{
		gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: list, Capacity: list},
	}
	for _, w := range with {
		w(n)
	}
	return n
}

// worker is a pod of a gang, or of none where the minimum is 0; on a node, or on none where that is empty.
func worker(name, gang string, minimum, gpus int, node string, priority int32, with ...func(*corev1.Pod)) *corev1.Pod {
	asks := corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "a", UID: types.UID(name), Labels: map[string]string{"app": gang},
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName: node, Priority: &priority, SchedulerName: "tegen-scheduler",
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: asks}}},
		},
	}
	if minimum > 0 {
		p.Annotations[gangcache.Prefix+gangcache.Name] = gang
		p.Annotations[gangcache.Prefix+gangcache.MinMembers] = fmt.Sprint(minimum)
	}
	for _, w := range with {
		w(p)
	}
	return p
}

func workers(gang string, n, minimum, gpus int, with ...func(*corev1.Pod)) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, worker(fmt.Sprintf("%s-%d", gang, i), gang, minimum, gpus, "", 100, with...))
	}
	return out
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
	}
}

// better is apart where there is a choice.
func better(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}
}

func shuns(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{
		{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shunned"}},
		},
	}
}

const index = "batch.kubernetes.io/job-completion-index"

// indexed gives each pod the number that it has among its like.
func indexed(pods []*corev1.Pod) []*corev1.Pod {
	for i, p := range pods {
		p.Labels[index] = fmt.Sprint(i)
	}
	return pods
}

// shunsIndex keeps away from the pods of one number.
func shunsIndex(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		shuns(p)
		term := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{index: fmt.Sprint(n)}}
	}
}

func closed(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
}

// TestDryRun places gangs on a snapshot with kube-scheduler's own filters.
func TestDryRun(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		nodes   []*corev1.Node
		running []*corev1.Pod
		gang    []*corev1.Pod
		short   string // "" where it fits
		pinned  bool
	}{
		"fits": {
			reason: "as many as the nodes have GPUs", nodes: []*corev1.Node{machine("x", 2), machine("y", 2)},
			gang: workers("g", 4, 4, 1), pinned: true,
		},
		"better apart": {
			reason: "what had better be apart is placed by score, one after another",
			nodes:  []*corev1.Node{machine("x", 4), machine("y", 4)},
			gang:   workers("g", 4, 4, 1, better),
		},
		"one too many": {
			reason: "the message counts what there is room for",
			nodes:  []*corev1.Node{machine("x", 2), machine("y", 1)}, gang: workers("g", 4, 4, 1),
			short: "gang a/g needs 4 pods at once and has room for 3, none for pod g-0: 2 Insufficient nvidia.com/gpu",
		},
		"taken": {
			reason: "running pods count", nodes: []*corev1.Node{machine("x", 4)},
			running: []*corev1.Pod{worker("r", "", 0, 3, "x", 0)}, gang: workers("g", 2, 2, 1),
			short: "gang a/g needs 2 pods at once and has room for 1, none for pod g-0: 1 Insufficient nvidia.com/gpu",
		},
		"taint": {
			reason: "a node that tolerates nobody is no room",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 8, closed)}, gang: workers("g", 2, 2, 1),
			short: "gang a/g needs 2 pods at once and has room for 1, none for pod g-0: " +
				"1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)",
		},
		"minimum": {
			reason: "members beyond the minimum are not asked for", nodes: []*corev1.Node{machine("x", 2)},
			gang: workers("g", 4, 2, 1), pinned: true,
		},
		"two sizes": {
			reason: "the small ones must not take the room of the large one",
			nodes:  []*corev1.Node{machine("x", 4), machine("y", 1), machine("z", 1)},
			gang:   append(workers("g", 2, 3, 1), worker("g-9", "g", 3, 4, "", 100)), pinned: true,
		},
		"apart": {
			reason: "where one goes changes where the next may",
			nodes:  []*corev1.Node{machine("x", 8), machine("y", 8)}, gang: workers("g", 3, 3, 1, apart),
			short: "gang a/g needs 3 pods at once and has room for 2, none for pod g-0: " +
				"2 node(s) didn't match pod anti-affinity rules",
		},
		"apart and room": {
			reason: "members that depend on each other are held to their nodes",
			nodes:  []*corev1.Node{machine("x", 8), machine("y", 8)}, gang: workers("g", 2, 2, 1, apart), pinned: true,
		},
		"a number that others shun": {
			reason:  "an index tells members apart where an anti-affinity selects by it",
			nodes:   []*corev1.Node{machine("x", 8)},
			running: []*corev1.Pod{worker("r", "", 0, 1, "x", 0, shunsIndex(1))},
			gang:    indexed(workers("g", 3, 3, 1)),
			short: "gang a/g needs 3 pods at once and has room for 2, none for pod g-1: " +
				"1 node(s) didn't satisfy existing pods anti-affinity rules",
		},
		"a number that others shun, which is not needed": {
			reason:  "what keeps the first member away leaves the others where they are",
			nodes:   []*corev1.Node{machine("x", 8)},
			running: []*corev1.Pod{worker("r", "", 0, 1, "x", 0, shunsIndex(0))},
			gang:    indexed(workers("g", 3, 2, 1)), pinned: true,
		},
		"a number that they shun": {
			reason: "only the first member keeps the others away",
			nodes:  []*corev1.Node{machine("x", 3), machine("y", 3)},
			gang:   indexed(workers("g", 3, 3, 1, shunsIndex(0))), pinned: true,
		},
		"half there": {
			reason: "what is bound is not asked for again", nodes: []*corev1.Node{machine("x", 4)},
			running: []*corev1.Pod{worker("g-7", "g", 3, 2, "x", 100)}, gang: workers("g", 2, 3, 1), pinned: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, c.nodes, c.running)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			p, short, err := g.dryRun(t.Context(), g.shared.cache.Attempt(uidOf(c.gang[0])).Wants)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if short != nil {
				got = short.String()
			}
			if diff := cmp.Diff(c.short, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", c.reason, diff)
			}
			if p != nil && p.pinning != c.pinned {
				t.Errorf("%s: held to nodes: %t", c.reason, p.pinning)
			}
		})
	}
}
