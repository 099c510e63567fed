package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// newDRAManager is the one that kube-scheduler makes. The function that it returns waits until the manager has seen
// every object of the client.
func newDRAManager(
	t testing.TB, client kubernetes.Interface, shared informers.SharedInformerFactory,
) (fwk.SharedDRAManager, func()) {
	t.Helper()
	slices, err := tracker.StartTracker(t.Context(), tracker.Options{
		SliceInformer: shared.Resource().V1().ResourceSlices(), KubeClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := assumecache.NewAssumeCache(
		klog.Background(), shared.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil,
	)
	manager := dynamicresources.NewDRAManager(t.Context(), claims, slices, shared)
	classes, err := shared.Resource().V1().DeviceClasses().Informer().AddEventHandler(
		manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache),
	)
	if err != nil {
		t.Fatal(err)
	}
	known := claims.AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
	return manager, func() {
		if !toolscache.WaitForCacheSync(t.Context().Done(), slices.HasSynced, classes.HasSynced, known.HasSynced) {
			t.Error("the devices and claims did not become known")
		}
	}
}

const (
	driver      = "gpu.example.com"
	deviceClass = "gpu"
)

// deviceClasses are what a driver installs: its devices are also to be had as an extended resource.
func deviceClasses() *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: deviceClass},
		Spec: resourceapi.DeviceClassSpec{
			ExtendedResourceName: new("example.com/device"),
			Selectors: []resourceapi.DeviceSelector{{
				CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
			}},
		},
	}
}

// devices are what a driver publishes for a node.
func devices(node string, n int) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
		},
	}
	for i := range n {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	return slice
}

// anywhere are devices that every node reaches by the network.
func anywhere(pool string, n int) *resourceapi.ResourceSlice {
	slice := devices(pool, n)
	slice.Spec.NodeName, slice.Spec.AllNodes = nil, new(true)
	return slice
}

// claim is a ResourceClaim for a number of devices.
func claim(name string, count int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: types.UID("claim-" + name)},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpus", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: deviceClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount,
				Count: int64(count),
			}}},
		}},
	}
}

// generate is the claim that kube-controller-manager creates for a pod, whose status then names it.
func generate(pod *corev1.Pod, count int) *resourceapi.ResourceClaim {
	c := claim(pod.Name+"-gpus", count)
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
	}}
	pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = new(fmt.Sprintf("of-%d", count))
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: &c.Name}}
	return c
}

// claiming is a pod with a claim of a template.
func claiming(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: new("template")}}
}

// rather prefers a node, by its name.
func rather(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		preferred := &p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*preferred = []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}},
		}}
	}
}

// allocated gives a claim a device of a node.
func allocated(c *resourceapi.ResourceClaim, node string) *resourceapi.ResourceClaim {
	c.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
			{Request: "gpus", Driver: driver, Pool: node, Device: "gpu-0"},
		}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			},
		}}},
	}
	return c
}

// placed is where a dry run places the pods of a gang, in their order: "g-0 on x, g-1 on y", or what it lacks.
func placed(t *testing.T, g *Gang, gang []*corev1.Pod) string {
	t.Helper()
	p, short, err := g.dryRun(t.Context(), g.shared.cache.Attempt(uidOf(gang[0])).Wants)
	switch {
	case err != nil:
		t.Fatal(err)
	case short != nil:
		return short.String()
	}
	var out []string
	for _, pod := range gang {
		for _, a := range p.assignments {
			if a.pod.UID == pod.UID {
				out = append(out, pod.Name+" on "+p.name(a.node))
			}
		}
	}
	return strings.Join(out, ", ")
}

// TestDryRunDevices: a dry run counts the devices that it has given to other pods.
func TestDryRunDevices(t *testing.T) {
	both := []string{"g-0 on x, g-1 on y", "g-0 on y, g-1 on x"}
	rack := func(name string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels["rack"] = name } }
	shared := func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: new("one")}}
	}
	extended := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["example.com/device"] = resource.MustParse("8")
	}
	x, y, z := devices("x", 8), devices("y", 8), devices("z", 8)
	two := []*corev1.Node{machine("x", 0), machine("y", 0)}
	for name, c := range map[string]struct {
		nodes   []*corev1.Node
		gang    []*corev1.Pod
		claim   []int // how many devices each pod claims, by a template
		objects []runtime.Object
		want    []string // any of them
	}{
		"all devices of a node": {two, workers("g", 2, 2, 0, claiming), []int{8, 8}, []runtime.Object{x, y}, both},
		"beside each other": {
			two, workers("g", 2, 2, 0, claiming),
			[]int{4, 4},
			[]runtime.Object{x},
			[]string{"g-0 on x, g-1 on x"},
		},
		"the largest first": {
			two, workers("g", 2, 2, 0, claiming, rather("x")),
			[]int{3, 8},
			[]runtime.Object{x, devices("y", 3)},
			[]string{"g-0 on y, g-1 on x"},
		},
		"one too many": {
			two, workers("g", 3, 3, 0, claiming),
			[]int{8, 8, 8},
			[]runtime.Object{x, y},
			[]string{
				"gang a/g needs 3 pods at once and has room for 2, none for pod g-2: 2 cannot allocate all claims",
			},
		},
		"members beyond the minimum": {
			two, workers("g", 3, 2, 0, claiming), []int{8, 8, 8}, []runtime.Object{x, y}, both,
		},
		"an extended resource of a DeviceClass": {
			two, workers("g", 2, 2, 0, extended), nil, []runtime.Object{x, y}, both,
		},
		"devices of no node": {
			two, workers("g", 2, 2, 0, claiming),
			[]int{5, 5},
			[]runtime.Object{anywhere("pool", 8)},
			[]string{
				"gang a/g needs 2 pods at once and has room for 1, none for pod g-1: 2 cannot allocate all claims",
			},
		},
		"a rack that is tried in vain": {
			[]*corev1.Node{
				machine("x", 0, rack("a")), machine("w", 0, rack("a")), machine("y", 0, rack("b")),
				machine("z", 0, rack("b")),
			},
			workers("g", 2, 2, 0, claiming, gathers("must rack")),
			[]int{8, 8},
			[]runtime.Object{x, y, z},
			[]string{"g-0 on y, g-1 on z", "g-0 on z, g-1 on y"},
		},
		"one claim for two pods": {
			two, workers("g", 2, 2, 0, shared), nil,
			[]runtime.Object{x, y, claim("one", 8)},
			[]string{
				"gang a/g needs 2 pods at once and has room for 1, none for pod g-1: several pods share " +
					"ResourceClaim one, which has no devices yet and gets them only when one of them binds. Use a " +
					"ResourceClaimTemplate, so that each pod has a claim",
			},
		},
		"one claim for two pods, which has its device": {
			two, workers("g", 2, 2, 0, shared), nil,
			[]runtime.Object{x, y, allocated(claim("one", 1), "x")},
			[]string{"g-0 on x, g-1 on x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(c.objects, deviceClasses())
			for i, n := range c.claim {
				objects = append(objects, generate(c.gang[i], n))
			}
			g := newPlugin(t, c.nodes, nil, objects...)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			claims := g.profile.SharedDRAManager().ResourceClaims()
			before, err := claims.ListAllAllocatedDevices()
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if got := placed(t, g, c.gang); !slices.Contains(c.want, got) {
					t.Fatalf("want %q, got %q", c.want, got)
				}
				after, err := claims.ListAllAllocatedDevices()
				if err != nil || !before.Equal(after) {
					t.Fatalf("a dry run keeps devices: %v, %v", after, err)
				}
			}
		})
	}
}

// TestDryRunWritesNothing: a dry run changes no claim in the API, whatever has become of it before.
func TestDryRunWritesNothing(t *testing.T) {
	// Not all that the first pod needs is reserved, and so its node is not sure.
	t.Run("anywhere", func(t *testing.T) { testReserved(t, "") })
	t.Run("in one rack", func(t *testing.T) { testReserved(t, "x", gathers("must rack")) })
}

// testReserved has a gang whose first pod has its device on a node, and checks on which node the plan holds it.
func testReserved(t *testing.T, node string, with ...func(*corev1.Pod)) {
	rack := func(n *corev1.Node) { n.Labels["rack"] = "a" }
	gang := workers("g", 2, 2, 0, append(with, claiming)...)
	first, second := generate(gang[0], 1), generate(gang[1], 8)
	allocated(first, "x")
	first.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{Resource: "pods", Name: gang[0].Name, UID: gang[0].UID},
	}
	nodes := []*corev1.Node{machine("x", 0, rack), machine("y", 0, rack)}
	g := newPlugin(t, nodes, nil, deviceClasses(), devices("x", 8), devices("y", 8), first, second)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	p, _, err := g.dryRun(t.Context(), g.shared.cache.Attempt("g-0").Wants)
	if err != nil {
		t.Fatal(err)
	}
	want := map[gangcache.UID]string{"g-0": node, "g-1": "y"}
	if diff := cmp.Diff(want, p.nodes(true)); diff != "" {
		t.Errorf("a pod that has a device, and one that finds 8 on another node (-want +got):\n%s", diff)
	}
	if w := writes(g); len(w) > 0 {
		t.Errorf("a dry run writes %v", w)
	}
}

// TestVictimsBesideDevices: a gang with claims evicts pods whose other resources it needs. What it lacks of devices no
// eviction gives it.
func TestVictimsBesideDevices(t *testing.T) {
	for name, c := range map[string]struct {
		claimed int // devices of node x that the running pod has
		want    string
	}{"other resources": {0, "low"}, "devices": {8, "-"}} {
		t.Run(name, func(t *testing.T) {
			low := worker("low", "", 0, 1, "x", 1, claiming)
			gang := workers("g", 2, 2, 1, claiming)
			held := generate(low, c.claimed)
			if c.claimed > 0 {
				allocated(held, "x")
			}
			g := newPlugin(t, []*corev1.Node{machine("x", 1), machine("y", 1)}, []*corev1.Pod{low}, deviceClasses(),
				devices("x", 8), devices("y", 8), held, generate(gang[0], 8), generate(gang[1], 8))
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			if got := evicted(t, g, gang[0]); got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

// TestClaimsApart: a claim that holds its pod on a node without room does not keep the others from other nodes.
func TestClaimsApart(t *testing.T) {
	gang := workers("g", 2, 1, 1, claiming)
	g := newPlugin(t, []*corev1.Node{machine("x", 0), machine("y", 2)}, nil, deviceClasses(), devices("x", 8),
		devices("y", 8), allocated(generate(gang[0], 1), "x"), generate(gang[1], 1))
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if got := placed(t, g, gang); got != "g-1 on y" {
		t.Errorf("there is room on y: %s", got)
	}
}

// TestDeallocate: a claim that keeps its pod on a node without room gives up its devices, as kube-scheduler does for a
// pod that it tries.
func TestDeallocate(t *testing.T) {
	gang := workers("g", 2, 2, 1, claiming)
	first, second := generate(gang[0], 1), generate(gang[1], 1)
	g := newPlugin(t, []*corev1.Node{machine("x", 0), machine("y", 2)}, nil, deviceClasses(), devices("x", 8),
		devices("y", 8), allocated(first, "x"), second)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if got := placed(t, g, gang); !strings.Contains(got, "resourceclaim not available on the node") {
		t.Fatalf("a claim holds its pod on a node without GPUs: %s", got)
	}
	now, err := g.profile.ClientSet().ResourceV1().ResourceClaims("a").Get(t.Context(), first.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Status.Allocation != nil {
		t.Error("the claim keeps its device, and its pod from ever being placed")
	}
}

// TestMissingClaims: a gang whose members lack their claims says so, and is tried again when they have them.
func TestMissingClaims(t *testing.T) {
	gang := workers("g", 2, 2, 0, claiming)
	claims := []runtime.Object{generate(gang[0], 8), generate(gang[1], 8)}
	g := newPlugin(t, []*corev1.Node{machine("x", 0), machine("y", 0)}, nil, append(claims, deviceClasses(),
		devices("x", 8), devices("y", 8))...)
	activated := &activator{Framework: g.shared.handle}
	g.shared.handle = activated
	late := gang[1].DeepCopy()
	late.Status.ResourceClaimStatuses = nil
	g.shared.seen(nil, gang[0])
	g.shared.seen(nil, late)
	state := framework.NewCycleState()
	_, status, _ := g.profile.RunPreFilterPlugins(t.Context(), state, gang[0])
	want := "gang a/g needs 2 pods at once and lacks the ResourceClaims of 1: pod g-1 waits for " +
		"kube-controller-manager to create its ResourceClaim from ResourceClaimTemplate of-8"
	if status.Message() != want {
		t.Errorf("want %q, got %q", want, status.Message())
	}
	if result, s := g.PostFilter(t.Context(), state, gang[0], framework.NewDefaultNodeToStatus()); result != nil ||
		!s.IsRejected() {
		t.Errorf("eviction would help nobody: %v, %v", result, s)
	}
	activated.names = nil
	g.shared.seen(late, late)
	if len(activated.names) > 0 {
		t.Errorf("%v are tried again though nothing has changed", activated.names)
	}
	g.shared.seen(late, gang[1])
	if !slices.Equal(activated.names, []string{"g-0"}) {
		t.Errorf("the pod that looks for room is not tried again, but %v", activated.names)
	}
	if got := placed(t, g, gang); !strings.HasPrefix(got, "g-0 on ") {
		t.Errorf("the gang has all claims: %s", got)
	}
}

// activator records the pods that are to be tried.
type activator struct {
	framework.Framework
	names []string
}

func (a *activator) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, p := range pods {
		a.names = append(a.names, p.Name)
	}
}

// writes are the requests of a plugin that change something: "patch resourceclaims".
func writes(g *Gang) (out []string) {
	for _, a := range g.profile.ClientSet().(*fake.Clientset).Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	return out
}
