package scheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// driver publishes the devices of the tests' nodes, and has one DeviceClass.
const driver = "gpu.example.com"

// install creates the DeviceClass of the driver.
func (l *lab) install() {
	l.t.Helper()
	class := &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourceapi.DeviceClassSpec{
			ExtendedResourceName: new("example.com/gpu"),
			Selectors: []resourceapi.DeviceSelector{
				{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}},
			},
		},
	}
	if _, err := l.Client().ResourceV1().DeviceClasses().Create(l.t.Context(), class,
		metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// publish creates the ResourceSlice with which the driver on a node publishes its devices.
func (l *lab) publish(node string, count int) {
	l.t.Helper()
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
		},
	}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	if _, err := l.Client().ResourceV1().ResourceSlices().Create(l.t.Context(), slice,
		metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// template creates the ResourceClaimTemplate of a number of devices.
func (l *lab) template(ns, name string, count int) {
	l.t.Helper()
	template := &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: request(count)},
	}
	if _, err := l.Client().ResourceV1().ResourceClaimTemplates(ns).Create(l.t.Context(), template,
		metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// request asks for a number of devices of the driver.
func request(count int) resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "gpus", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
		},
	}}}}
}

// claiming lets a pod have devices by a claim from a template.
func claiming(template string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &template}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
	}
}

// apartAll asserts that no two claims of a namespace have the same device.
func (l *lab) apartAll(ns string) {
	l.t.Helper()
	claims, err := l.Client().ResourceV1().ResourceClaims(ns).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	users := map[string]string{}
	for _, c := range claims.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			device := d.Pool + "/" + d.Device
			if other := users[device]; other != "" {
				l.t.Errorf("claims %s and %s both have device %s", other, c.Name, device)
			}
			users[device] = c.Name
		}
	}
}

// testDevices tells stories of gangs whose devices a driver publishes. kube-controller-manager creates the claims.
func testDevices(l *lab) {
	l.install()
	l.story("devices", func(l *lab, ns string) {
		nodes := l.nodes(ns, 2, 0)
		for _, n := range nodes {
			l.publish(n, 8)
		}
		l.template(ns, "eight", 8)
		g := of(ns, "g", 2, 2, 0)
		g.with = claiming("eight")
		start := time.Now()
		l.create(g, 0, 2)
		l.until("both run", func() bool { return len(l.bound(g)) == 2 }, l.sight(g))
		l.t.Logf("both run after %v", time.Since(start).Round(time.Millisecond))
		on := map[string]bool{}
		for _, p := range l.pods(g) {
			on[p.Spec.NodeName] = true
		}
		if len(on) != 2 {
			l.t.Errorf("two pods that claim all devices of a node are on %v", on)
		}
		l.apartAll(ns)

		more := of(ns, "more", 2, 2, 0)
		more.with = g.with
		l.create(more, 0, 2)
		l.reported(more, "gang devices/more needs 2 pods at once and has room for 0")
		l.stays(more, 0)
		l.drop(g)
		l.runs(more, 2) // the devices are free once kube-controller-manager has seen to the claims
		l.drop(more)

		three := of(ns, "three", 3, 3, 0)
		three.with = g.with
		l.create(three, 0, 3)
		l.reported(three, "gang devices/three needs 3 pods at once and has room for 2")
		l.stays(three, 0)
		l.publish(l.nodes(ns, 1, 0)[0], 8)
		l.runs(three, 3)
	})

	l.story("late-template", func(l *lab, ns string) {
		l.publish(l.nodes(ns, 1, 0)[0], 4)
		l.template(ns, "early", 2)
		g := of(ns, "g", 2, 2, 0)
		g.with = func(p *corev1.Pod) {
			template := "late"
			if p.Name == "g-1" { // it waits for the other
				template = "early"
			}
			claiming(template)(p)
		}
		l.create(g, 0, 1)
		l.create(g, 1, 2)
		l.reported(g, "pod g-0 waits for kube-controller-manager to create its ResourceClaim", "Template late")
		l.stays(g, 0)
		l.template(ns, "late", 2)
		l.runs(g, 2)
		l.apartAll(ns)
	})

	l.story("shared-claim", func(l *lab, ns string) {
		l.publish(l.nodes(ns, 1, 0)[0], 1)
		one := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: ns}, Spec: request(1)}
		if _, err := l.Client().ResourceV1().ResourceClaims(ns).Create(l.t.Context(), one,
			metav1.CreateOptions{}); err != nil {
			l.t.Fatal(err)
		}
		share := func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &one.Name}}
		}
		g := of(ns, "g", 2, 2, 0)
		g.with = share
		l.create(g, 0, 2)
		l.reported(g, "several pods share ResourceClaim one, which has no devices yet")
		l.stays(g, 0)
		first := gang{namespace: ns, name: "first", with: share}
		l.create(first, 0, 1)
		l.runs(first, 1)
		l.runs(g, 2)
	})

	l.story("extended-devices", func(l *lab, ns string) {
		for _, n := range l.nodes(ns, 2, 0) {
			l.publish(n, 2)
		}
		g := of(ns, "g", 2, 2, 0)
		g.with = func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": quantity("2")}
		}
		l.create(g, 0, 2)
		l.runs(g, 2)
		l.apartAll(ns)
	})
}

// deviceRounds is how many times two gangs contend for devices.
const deviceRounds = 20

// TestDevices has a control plane and a scheduler of its own, which it kills.
func TestDevices(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.install()
	for _, c := range []struct {
		name string
		tell func(l *lab, ns string)
	}{{"rounds", contendForDevices}, {"restart", restartWhileBinding}} {
		t.Run(c.name, func(t *testing.T) {
			own := *l
			own.t = t
			c.tell(&own, own.namespace(c.name))
			l.scheduler = own.scheduler
		})
	}
}

// contendForDevices lets two gangs contend for devices that one of them can have, again and again.
func contendForDevices(l *lab, ns string) {
	auditor := l.audit(2, ns)
	for _, n := range l.nodes(ns, 2, 0) {
		l.publish(n, 8)
	}
	l.template(ns, "four", 4)
	for round := range deviceRounds {
		a := of(ns, fmt.Sprintf("r%d-a", round), 3+round%2, 3, 0)
		b := of(ns, fmt.Sprintf("r%d-b", round), 3+round%2, 3, 0)
		a.with, b.with = claiming("four"), claiming("four")
		var pods []*corev1.Pod
		for i := range a.pods {
			pods = append(pods, a.pod(i), b.pod(i))
		}
		l.createAll(pods)
		l.finishAll(round, [][]gang{{a}, {b}})
		l.apartAll(ns)
		l.until("the round's pods have gone", func() bool { return l.empty(ns) }, func() string { return "" })
	}
	auditor.report(l.t, 10*time.Second)
}

// restartWhileBinding kills the scheduler while a gang binds: some claims then have devices, and some of those are
// reserved for pods that have no node. The next scheduler finishes the gang.
func restartWhileBinding(l *lab, ns string) {
	const pods = 40
	for _, n := range l.nodes(ns, 10, 0) {
		l.publish(n, 8)
	}
	l.template(ns, "two", 2)
	l.qps = 20 // so that the gang's bindings take some seconds
	configuration := edited(l.t, "leaderElect: true", "leaderElect: false")
	for round := range 3 {
		if err := l.scheduler.Kill(); err != nil {
			l.t.Fatal(err)
		}
		l.scheduler = l.start(fmt.Sprintf("slow-%d", round), configuration)
		g := of(ns, fmt.Sprintf("g%d", round), pods, pods, 0)
		g.with = claiming("two")
		l.create(g, 0, pods)
		l.until("a part of the gang is bound", func() bool { return len(l.bound(g)) >= pods/4 }, l.sight(g))
		if err := l.scheduler.Kill(); err != nil {
			l.t.Fatal(err)
		}
		l.t.Logf("killed with %d of %d pods bound; %d claims are reserved for others", len(l.bound(g)), pods,
			l.reserved(g, false))
		l.scheduler = l.start(fmt.Sprintf("next-%d", round), configuration)
		l.runs(g, pods)
		l.apartAll(ns)
		if n := l.reserved(g, true); n != pods {
			l.t.Errorf("%d claims are reserved for the %d pods that run: a kubelet starts no pod without", n, pods)
		}
		l.drop(g)
		l.gone(g, 0)
	}
}

// reserved counts the claims that are reserved for pods of a gang that have a node, or for those that have none.
func (l *lab) reserved(g gang, placed bool) (n int) {
	l.t.Helper()
	counts := map[string]bool{}
	for _, p := range l.pods(g) {
		counts[p.Name] = (p.Spec.NodeName != "") == placed
	}
	claims, err := l.Client().ResourceV1().ResourceClaims(g.namespace).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range claims.Items {
		for _, user := range c.Status.ReservedFor {
			if counts[user.Name] {
				n++
			}
		}
	}
	return n
}
