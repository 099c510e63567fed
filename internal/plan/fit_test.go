package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gpuNode is a node with eight GPUs; more is the rest of the Node.
func gpuNode(name, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: 32, memory: "+
		"256Gi, ephemeral-storage: 900Gi, nvidia.com/gpu: 8, pods: 110}}%s}", name, more)
}

func cpuNode(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: 8, memory: "+
		"64Gi, ephemeral-storage: 900Gi, pods: 110}}}", name)
}

// pod is one that runs; more is the rest of its spec.
func pod(name, node, cpu, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: ml}, spec: {nodeName: %s, "+
		"containers: [{name: c, resources: {requests: {cpu: %s}}}]%s}}", name, node, cpu, more)
}

func inventory(t testing.TB, documents ...string) *Inventory {
	t.Helper()
	inv, err := ReadInventory(Source{"nodes.yaml", strings.NewReader(strings.Join(documents, "\n---\n"))})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// placed tells where pods go, and what is missing why.
func placed(f *Fit) (out []string) {
	verdict := fmt.Sprintf("fits %t", f.Fits)
	if f.Heuristic {
		verdict += ", by a heuristic"
	}
	out = append(out, verdict)
	for _, n := range f.Nodes {
		if len(n.Pods) > 0 {
			out = append(out, n.Name+": "+strings.Join(ranges(n.Pods), ", "))
		}
		if len(n.Running) > 0 {
			out = append(out, n.Name+" has: "+strings.Join(ranges(n.Running), ", "))
		}
	}
	for _, m := range f.Missing {
		var why []string
		for _, r := range m.Reasons {
			why = append(why, fmt.Sprintf("%d %s", r.Nodes, r.Reason))
		}
		out = append(out, fmt.Sprintf("%d of %s: %s", m.Pods, m.Role, strings.Join(why, ", ")))
	}
	return out
}

const (
	whole  = "resources: {cpu: 1, memory: 1Gi, gpu: 8}, " // a node's GPUs
	single = "resources: {cpu: 1, memory: 1Gi, gpu: 1}, "
	small  = "resources: {cpu: 1, memory: 1Gi}, "
)

var fits = map[string]struct {
	spec  string
	nodes []string
	want  []string
}{
	"one on each node": {
		whole + "workers: {replicas: 2}",
		[]string{gpuNode("a", ""), gpuNode("b", "")},
		[]string{"fits true", "a: j-worker-0-*", "b: j-worker-1-*"},
	},
	"several on a node": {
		single + "workers: {replicas: 9}",
		[]string{gpuNode("a", ""), gpuNode("b", "")},
		[]string{"fits true", "a: j-worker-{0..7}-*", "b: j-worker-8-*"},
	},
	"too few GPUs": {
		whole + "workers: {replicas: 3}",
		[]string{gpuNode("a", ""), gpuNode("b", ""), cpuNode("c")},
		[]string{"fits false", "a: j-worker-0-*", "b: j-worker-1-*", "1 of worker: 3 insufficient nvidia.com/gpu"},
	},
	"two resources are short": {
		"resources: {cpu: 16, memory: 100Gi}, workers: {replicas: 1}",
		[]string{cpuNode("a")},
		[]string{"fits false", "1 of worker: 1 insufficient cpu, 1 insufficient memory"},
	},
	"what runs takes its part, what ended does not": {
		small + "workers: {replicas: 2}",
		[]string{
			cpuNode("a"), pod("x", "a", "7", ""), pod("v", "a", "8", "}, status: {phase: Succeeded"),
			pod("z", "elsewhere", "8", ""),
		},
		[]string{"fits false", "a: j-worker-0-*", "1 of worker: 1 insufficient cpu"},
	},
	"a gang's minimum, and what else finds a place": {
		whole + "workers: {min: 2, max: 4}, gang: {scheduler: koordinator}",
		[]string{gpuNode("a", ""), gpuNode("b", ""), gpuNode("c", "")},
		[]string{
			"fits true", "a: j-worker-0-*", "b: j-worker-1-*", "c: j-worker-2-*",
			"1 of worker: 3 insufficient nvidia.com/gpu",
		},
	},
	"taints": {
		single + "workers: {replicas: 1}",
		[]string{
			gpuNode("a", ", spec: {taints: [{key: k, value: v, effect: NoSchedule}]}"),
			gpuNode("b", ", spec: {taints: [{key: gone, effect: NoExecute}]}"),
		},
		[]string{"fits false", "1 of worker: 1 taint gone:NoExecute, 1 taint k=v:NoSchedule"},
	},
	"tolerated taints": {
		single + "workers: {replicas: 2}, placement: {tolerations: [{key: k, operator: Exists}]}",
		[]string{gpuNode("a", ", spec: {taints: [{key: k, value: v, effect: NoSchedule}]}")},
		[]string{"fits true", "a: j-worker-{0..1}-*"},
	},
	"a taint that only asks": {
		single + "workers: {replicas: 1}",
		[]string{gpuNode("a", ", spec: {taints: [{key: k, effect: PreferNoSchedule}]}")},
		[]string{"fits true", "a: j-worker-0-*"},
	},
	"a node selector": {
		single + "workers: {replicas: 1}, placement: {nodeSelector: {pool: gpu}}",
		[]string{gpuNode("a", ""), strings.Replace(gpuNode("b", ""), "name: b", "name: b, labels: {pool: gpu}", 1)},
		[]string{"fits true", "b: j-worker-0-*"},
	},
	"node affinity": {
		single + "workers: {replicas: 1}, podTemplate: {spec: {affinity: {nodeAffinity: " +
			"{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: " +
			"metadata.name, operator: In, values: [z]}]}]}}}}}",
		[]string{gpuNode("a", "")},
		[]string{"fits false", "1 of worker: 1 node selector or affinity"},
	},
	"cordoned and not ready": {
		single + "workers: {replicas: 1}",
		[]string{
			gpuNode("a", ", spec: {unschedulable: true}"),
			strings.Replace(gpuNode("b", ""), "status: {",
				"status: {conditions: [{type: Ready, status: Unknown}], ", 1),
		},
		[]string{"fits false", "1 of worker: 1 cordoned, 1 not ready"},
	},
	"the number of pods": {
		small + "workers: {replicas: 2}",
		[]string{strings.Replace(cpuNode("a"), "pods: 110", "pods: 1", 1)},
		[]string{"fits false", "a: j-worker-0-*", "1 of worker: 1 too many pods"},
	},
	"an inventory by hand counts no pods": {
		small + "workers: {replicas: 2}",
		[]string{"{apiVersion: v1, kind: Node, metadata: {name: a}, status: {capacity: {cpu: 4, memory: 8Gi, " +
			"ephemeral-storage: 90Gi}}}"},
		[]string{"fits true", "a: j-worker-{0..1}-*"},
	},
	"anti-affinity by hostname": {
		small + "workers: {replicas: 2}, podTemplate: {spec: {affinity: {podAntiAffinity: " +
			"{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, " +
			"labelSelector: {matchLabels: {app.kubernetes.io/component: worker}}}]}}}}",
		[]string{cpuNode("a"), cpuNode("b")},
		[]string{"fits true", "a: j-worker-0-*", "b: j-worker-1-*"},
	},
	"a pod that runs avoids these": {
		small + "workers: {replicas: 1}",
		[]string{cpuNode("a"), pod("x", "a", "1",
			", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "+
				"kubernetes.io/hostname, labelSelector: {}}]}}")},
		[]string{"fits false", "1 of worker: 1 pod anti-affinity"},
	},
	"ports of the node": {
		small + "workers: {replicas: 2}, network: {host: true}",
		[]string{cpuNode("a")},
		[]string{"fits false", "a: j-worker-0-*", "1 of worker: 1 port 29400 of the node is taken"},
	},
	"helpers leave nodes with accelerators to others": {
		whole + "workers: {replicas: 1}, rendezvous: {backend: etcd, store: etcd}",
		[]string{gpuNode("a", ""), cpuNode("b")},
		[]string{"fits true", "a: j-worker-0-*", "b: j-etcd-0"},
	},
	"every role needs its place": {
		"resources: {cpu: 4, memory: 1Gi}, workers: {replicas: 2}, rendezvous: {backend: etcd, store: etcd}, " +
			"roles: {etcd: {resources: {cpu: 1}}}",
		[]string{cpuNode("a")},
		[]string{"fits false, by a heuristic", "a: j-worker-{0..1}-*", "1 of etcd: 1 insufficient cpu"},
	},
	"another order finds a place": { // the worker takes the larger part of a node, and a comes first
		"resources: {cpu: 6, memory: 1Gi}, workers: {replicas: 1}, rendezvous: {backend: etcd, store: etcd}, " +
			"roles: {etcd: {resources: {cpu: 3, memory: 40Gi}}}",
		[]string{
			cpuNode("a"), "{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 6, " +
				"memory: 8Gi, ephemeral-storage: 90Gi}}}",
		},
		[]string{"fits true", "a: j-etcd-0", "b: j-worker-0-*"},
	},
	"pods of the job that run keep their places": {
		whole + "workers: {replicas: 2}",
		[]string{
			gpuNode("a", ""), gpuNode("b", ""),
			strings.Replace(pod("j-worker-1-x7k2q", "b", "1", ""), "cpu: 1}",
				"cpu: 1}, limits: {nvidia.com/gpu: 8}", 1),
		},
		[]string{"fits true", "a: j-worker-0-*", "b has: j-worker-1-*"},
	},
	"before a suspended job starts": {
		whole + "suspend: true, workers: {replicas: 1}, rendezvous: {backend: etcd, store: etcd}, storage: " +
			"[{mountPath: /d, dynamic: {size: 1Gi}, dataset: {url: 'https://a.test/d.zip'}}]",
		[]string{
			gpuNode("a", ""), pod("j-etcd-0", "a", "250m", ""),
			pod("j-prefetch-data-x7k2q", "a", "30", "}, status: {phase: Succeeded"),
			pod("j-worker-0-x7k2q", "''", "30", ""),
		},
		[]string{"fits true", "a: j-worker-0-*", "a has: j-etcd-0"},
	},
}

func TestFit(t *testing.T) {
	for name, c := range fits {
		t.Run(name, func(t *testing.T) {
			j := of(t, c.spec)
			p := New([]*Job{j})
			p.Fit(inventory(t, c.nodes...))
			if diff := cmp.Diff(c.want, placed(j.Fit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p.Fits() != j.Fit.Fits {
				t.Errorf("the plan fits: %t", p.Fits())
			}
		})
	}
}

// TestFitInTurn: a job finds what the jobs before it leave, and one that does not start takes nothing.
func TestFitInTurn(t *testing.T) {
	inv := inventory(t, gpuNode("a", ""), gpuNode("b", ""))
	var got []bool
	for _, replicas := range []int{1, 3, 1, 1} {
		p := New([]*Job{of(t, fmt.Sprintf(whole+"workers: {replicas: %d}", replicas))})
		p.Fit(inv)
		got = append(got, p.Fits())
	}
	if diff := cmp.Diff([]bool{true, false, true, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInventory: lists and documents, fields that are newer than this program, and whatever is wrong with one.
func TestInventory(t *testing.T) {
	inv := inventory(t, "apiVersion: v1\nkind: List\nitems:\n- "+gpuNode("a", "")+"\n- "+pod("x", "a", "1",
		", newField: 1"),
		"apiVersion: v1\nkind: NodeList\nitems:\n- {metadata: {name: b}, status: {newField: 1}}",
		"apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: v}}")
	if len(inv.nodes) != 2 || len(inv.pods) != 2 {
		t.Errorf("%d nodes, %d pods", len(inv.nodes), len(inv.pods))
	}
	if cpu := inv.nodes[0].free["cpu"]; cpu != 31000 {
		t.Errorf("%d m of CPU are free", cpu)
	}
	for text, want := range map[string]string{
		"":                                     "reading nodes.yaml: no Node in the inventory",
		pod("x", "a", "1", ""):                 "no Node in the inventory",
		"{":                                    "nodes.yaml:1: parsing YAML",
		"a":                                    "nodes.yaml:1: reading a document: want a mapping",
		gpuNode("a", "") + "\n---\nkind: Node": "nodes.yaml:3: reading a document: apiVersion or kind is missing",
		gpuNode("a", "") + "\n---\n" + gpuNode("a", ""):             "Node a is there twice",
		pod("x", "a", "1", "") + "\n---\n" + pod("x", "a", "1", ""): "Pod ml/x is there twice",
		"{apiVersion: v1, kind: Node}":                              "Node 1 has no name",
		"{apiVersion: v1, kind: Pod}":                               "Pod 1 has no name",
		"{apiVersion: v1, kind: Service, metadata: {name: s}}": "Service: an inventory holds Nodes " +
			"and Pods",
		"{apiVersion: x/v1, kind: Foo}": "Foo: an inventory holds Nodes and " +
			"Pods",
		"{apiVersion: v1, kind: Node, metadata: {name: [a]}}": "nodes.yaml:1: reading Node: " +
			"metadata.name: got a list, want a string",
		strings.Replace(gpuNode("a", ""), "cpu: 32", "cpu: many", 1):            "nodes.yaml:1: reading Node",
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node}\n":  "Node 1 has no name",
		"apiVersion: v1\nkind: List\nitems: {a: b}\n":                           "nodes.yaml:3: reading List",
		"{apiVersion: v1, kind: Node, apiVersion: v1, metadata: {name: twice}}": "parsing YAML",
	} {
		_, err := ReadInventory(Source{"nodes.yaml", strings.NewReader(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestExtremes: numbers that no cluster has neither overflow nor hang.
func TestExtremes(t *testing.T) {
	for _, amount := range []string{"9223372036854775807", "1e30", "-1", "-9E", "0", "1n"} {
		inv := inventory(t, strings.Replace(gpuNode("a", ""), "cpu: 32", "cpu: '"+amount+"'", 1),
			pod("x", "a", "'"+amount+"'", ""), pod("v", "a", "'"+amount+"'", ""))
		j := of(t, single+"workers: {replicas: 4096}")
		New([]*Job{j}).Fit(inv)
		if j.Fit.Fits {
			t.Errorf("%s: 4096 GPUs fit into 8", amount)
		}
	}
}
