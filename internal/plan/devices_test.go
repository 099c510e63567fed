package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gpuClass = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.example.com}, spec: " +
	"{selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}}"

// slice is what a driver offers on a node: so many devices with 80Gi of memory each, the first of them with 40Gi.
func slice(node, driver string, count int) string {
	var all []string
	for i := range count {
		memory := "80Gi"
		if i == 0 {
			memory = "40Gi"
		}
		all = append(all, fmt.Sprintf("{name: gpu-%d, capacity: {memory: {value: %s}}}", i, memory))
	}
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %[1]s-%[2]s}, spec: "+
		"{driver: %[2]s, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, "+
		"devices: [%[3]s]}}",
		node, driver, strings.Join(all, ", "))
}

// held is a claim that has some devices of a node.
func held(node string, numbers ...int) string {
	var all []string
	for _, i := range numbers {
		all = append(all, fmt.Sprintf("{request: r, driver: gpu.example.com, pool: %s, device: gpu-%d}", node, i))
	}
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: held-%s, namespace: "+
		"other}, status: {allocation: {devices: {results: [%s]}}}}", node, strings.Join(all, ", "))
}

// TestDevices: claims are placed as kube-scheduler places them, and what is lacking is said by class.
func TestDevices(t *testing.T) {
	t.Parallel()
	const claims = "resources: {deviceClass: gpu.example.com, gpu: %s, cpu: 1, memory: 1Gi%s}, "
	const large = "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('50Gi'))"
	nodes := []string{cpuNode("a"), cpuNode("b")}
	for name, c := range map[string]struct {
		gpu, more string
		inventory []string
		want      []string
		notes     string
	}{
		"as many as there are": {
			gpu: "4", inventory: []string{gpuClass, slice("a", "gpu.example.com", 8), slice("b", "gpu.example.com", 3)},
			want: []string{"fits true", "a: j-worker-{0..1}-*"},
		},
		"too few on each": {
			gpu: "4", inventory: []string{gpuClass, slice("a", "gpu.example.com", 7), slice("b", "gpu.example.com", 3)},
			want: []string{
				"fits false", "a: j-worker-0-*",
				"1 of worker: 2 insufficient devices of class gpu.example.com: 4 asked, 3 free",
			},
		},
		"those of other claims are taken": {
			gpu: "4", inventory: []string{
				gpuClass, slice("a", "gpu.example.com", 8), slice("b", "gpu.example.com", 4), held("b", 1, 2),
				held("a", 7),
			},
			want: []string{
				"fits false", "a: j-worker-0-*",
				"1 of worker: 1 insufficient devices of class gpu.example.com: 4 asked, 2 free, " +
					"1 insufficient devices of class gpu.example.com: 4 asked, 3 free",
			},
		},
		"another driver's are none": {
			gpu: "1", inventory: []string{gpuClass, slice("a", "other.example.com", 8)},
			want: []string{
				"fits false", "2 of worker: 2 insufficient devices of class gpu.example.com: 1 asked, 0 free",
			},
		},
		"by an expression": {
			gpu: "4", more: `, deviceSelectors: ["` + large + `"]`,
			inventory: []string{gpuClass, slice("a", "gpu.example.com", 5), slice("b", "gpu.example.com", 4)},
			want: []string{
				"fits false", "a: j-worker-0-*", "1 of worker: 1 insufficient devices of class gpu.example.com where " +
					large + ": 4 asked, 0 free, 1 insufficient devices of class gpu.example.com where " + large +
					": 4 asked, 3 free",
			},
		},
		"no class": {
			gpu: "1", inventory: []string{slice("a", "gpu.example.com", 8)},
			want: []string{
				"fits false", "2 of worker: 2 claim ml/accelerators, request accelerators: could not retrieve device " +
					"class gpu.example.com: no DeviceClass gpu.example.com in the inventory",
			},
		},
		"without devices claims are not looked at": {
			gpu: "1", want: []string{"fits true", "a: j-worker-{0..1}-*"},
			notes: "worker: resource claims are not looked at",
		},
		"another's template": {
			gpu: "1", more: ", claims: [fabric]", inventory: []string{gpuClass, slice("a", "gpu.example.com", 2)},
			want:  []string{"fits true", "a: j-worker-{0..1}-*"},
			notes: "worker: ResourceClaimTemplate fabric is not in the inventory: its devices are not counted",
		},
		"another's template that is there": {
			gpu: "1", more: ", claims: [fabric]", inventory: []string{
				gpuClass, slice("a", "gpu.example.com", 3), "{apiVersion: resource.k8s.io/v1beta1, kind: " +
					"ResourceClaimTemplate, metadata: {name: fabric, namespace: ml}, spec: {spec: {devices: " +
					"{requests: [{name: r, deviceClassName: gpu.example.com}]}}}}",
			},
			want: []string{
				"fits false", "a: j-worker-0-*",
				"1 of worker: 2 insufficient devices of class gpu.example.com: 1 asked, 0 free",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New([]*Job{of(t, fmt.Sprintf(claims, c.gpu, c.more)+"workers: {replicas: 2}")})
			p.Fit(inventory(t, slices.Concat(nodes, c.inventory)...))
			if diff := cmp.Diff(c.want, placed(p.Jobs[0].Fit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := strings.Join(p.Jobs[0].Notes, "; "); got != c.notes {
				t.Errorf("notes %q, want %q", got, c.notes)
			}
		})
	}
}

// TestDevicesInTurn: what one job gets is gone for the next, and one that does not fit takes nothing.
func TestDevicesInTurn(t *testing.T) {
	t.Parallel()
	const spec = "resources: {deviceClass: gpu.example.com, gpu: 2, cpu: 1, memory: 1Gi}, workers: {replicas: %d}"
	p := New([]*Job{of(t, fmt.Sprintf(spec, 3)), of(t, fmt.Sprintf(spec, 2)), of(t, fmt.Sprintf(spec, 1))})
	p.Fit(inventory(t, cpuNode("a"), gpuClass, slice("a", "gpu.example.com", 8)))
	var got []bool
	for _, j := range p.Jobs {
		got = append(got, j.Fit.Fits)
	}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSharedDevices: those that a driver offers on every node are counted once, and a claim that has its devices binds
// pods to their node.
func TestSharedDevices(t *testing.T) {
	t.Parallel()
	const spec = "resources: {deviceClass: gpu.example.com, gpu: 1, cpu: 5, memory: 1Gi}, workers: {replicas: 2}"
	shared := strings.Replace(slice("a", "gpu.example.com", 1), "nodeName: a", "allNodes: true", 1)
	p := New([]*Job{of(t, spec)})
	p.Fit(inventory(t, cpuNode("a"), cpuNode("b"), gpuClass, shared))
	want := []string{
		"fits false, by a heuristic", "a: j-worker-0-*",
		"1 of worker: 1 insufficient cpu, 1 insufficient devices of class gpu.example.com: 1 asked, 0 free",
	}
	if diff := cmp.Diff(want, placed(p.Jobs[0].Fit)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	p = New([]*Job{of(t, "resources: {cpu: 1, memory: 1Gi}, workers: {replicas: 1}, podTemplate: {spec: "+
		"{resourceClaims: [{name: disk, resourceClaimName: held-b}]}}")})
	claim := strings.Replace(held("b", 0), "namespace: other", "namespace: ml", 1)
	claim = strings.Replace(claim, "{allocation: {", "{allocation: {nodeSelector: {nodeSelectorTerms: [{matchFields: "+
		"[{key: metadata.name, operator: In, values: [b]}]}]}, ", 1)
	p.Fit(inventory(t, cpuNode("a"), cpuNode("b"), gpuClass, claim))
	if diff := cmp.Diff([]string{"fits true", "b: j-worker-0-*"}, placed(p.Jobs[0].Fit)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOddDevices: what is not as an API server prints it is an error that names it.
func TestOddDevices(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		strings.Replace(gpuClass, "/v1", "/v9", 1): "DeviceClass of resource.k8s.io/v9: the version is not known: " +
			"have it as resource.k8s.io/v1",
		strings.Replace(slice("a", "d", 1), "generation: 1", "generation: x", 1): "ResourceSlice of " +
			"resource.k8s.io/v1: ",
		"{apiVersion: resource.k8s.io/v1, kind: Other, metadata: {name: a}}": "Other: an inventory holds Nodes and " +
			"Pods",
	} {
		_, err := ReadInventory(Source{"n.yaml", strings.NewReader(cpuNode("a") + "\n---\n" + in)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
