package rule

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
	"github.com/tegen-dev/tegen/schema/part"
)

var networkRules = []Rule{
	part.Of5(knownMachine, part.MachineType, part.Machine, part.GPU, part.AskedGPU, part.GPUResource),
	part.Of3(devices, deviceAmounts, part.GPU, part.GPUResource),
	part.Of2(hugePages, deviceAmounts, requestsAny),
	part.Of5(fabric, networkFabric, part.Machine, part.GPU, cards, part.RunAsUser),
	part.Of4(tpuTopology, tpu, part.GPU, nodeSelector, part.Workers),
	part.Of1(policies, part.Network),
	part.Of1(peers, part.Network),
	part.Of2(scriptReach, part.Network, part.Script),
	part.Of1(podMonitor, part.Metrics),
}

var (
	cards        = part.OfSpec("resources.devices", func(s *job.Spec) []string { return s.Resources.Cards() })
	tpu          = part.OfSpec("resources.gpu resources.gpuResource", (*job.Spec).TPU)
	nodeSelector = part.OfSpec("placement.nodeSelector", func(s *job.Spec) map[string]string {
		return s.Placement.NodeSelector
	})
	networkFabric = part.New("network.fabric resources.machine resources.devices", (*job.Job).Fabric)
	deviceAmounts = part.OfSpec("resources.devices", func(s *job.Spec) map[string]resource.Quantity {
		return s.Resources.Devices
	})
	// requestsAny says whether workers ask for CPU or memory.
	requestsAny = part.OfSpec("resources.cpu resources.memory resources.requests.cpu resources.requests.memory "+
		"resources.limits.memory", func(s *job.Spec) bool {
		r := &s.Resources
		return r.Amount(r.Requests, job.ResourceCPU) != nil || r.Amount(r.Requests, job.ResourceMemory) != nil ||
			r.MemoryLimit() != nil
	})
)

// knownMachine refuses a machine that nobody knows, and more accelerators than one has.
func knownMachine(p *Problems, machineType string, m *job.Machine, gpu, asked int64, gpuResource string) {
	const at = "spec.resources.machine"
	switch {
	case machineType == "":
	case m == nil:
		near := ""
		if name := nearestMachine(machineType); name != "" {
			near = fmt.Sprintf("; %s is one", name)
		}
		p.fail(at, "unknown", "%q is in neither docs/machines.md nor the Environment's machines%s", machineType, near)
	case gpu == 0 && asked == 0 && !p.Merged(at):
		p.fail(at, "requires", "a worker without accelerators has no share of a machine: write how many it has, in "+
			"spec.resources.gpu")
	case gpu > m.GPU:
		p.fail("spec.resources.gpu", "order", "%s has %d accelerators: a worker with %d has no place on it", m.Name,
			m.GPU, gpu)
	case gpu > 0 && gpuResource != m.Accelerator():
		p.fail("spec.resources.gpuResource", "order", "the accelerators of %s are %s, and not %s: leave out this "+
			"field or machine", m.Name, m.Accelerator(), gpuResource)
	}
}

const devicesAt = "spec.resources.devices"

// devices refuses amounts that an API server refuses for a name.
func devices(p *Problems, amounts map[string]resource.Quantity, gpu int64, gpuResource string) {
	for name, q := range amounts {
		switch {
		case strings.HasPrefix(name, job.HugePages): // which hugePages checks
		case name == gpuResource && gpu > 0:
			p.failKey(devicesAt, name, "duplicate", "is spec.resources.gpuResource already, of which gpu says how many")
		case q.Format == resource.BinarySI:
			p.fail(devicesAt+"."+name, "format", "%s is an amount of memory: of devices write a number", &q)
		}
	}
}

// hugePages refuses an amount of huge pages that is not a multiple of the page, or that no other amount stands beside.
func hugePages(p *Problems, amounts map[string]resource.Quantity, requestsAny bool) {
	for name, q := range amounts {
		size, ok := strings.CutPrefix(name, job.HugePages)
		if !ok {
			continue
		}
		switch page := resource.MustParse(size); {
		case q.Format != resource.BinarySI || page.Value() == 0 || q.Value()%page.Value() != 0:
			p.failKey(devicesAt, name, "format", "%s is no multiple of the page, in Mi or Gi", &q)
		case !requestsAny:
			p.failKey(devicesAt, name, "requires", "an API server admits huge pages only beside cpu or memory: say "+
				"one of them")
		}
	}
}

// fabric holds the word against the machine's, the devices and the user.
func fabric(p *Problems, f *job.Fabric, m *job.Machine, gpu int64, cards []string, user job.ID) {
	const at = "spec.network.fabric"
	switch {
	case f == nil:
	case gpu > 0 && m != nil && m.Fabric != nil && m.Fabric.Kind != f.Kind:
		p.fail(at, "order", "the machines of type %s have %s, and not %s: leave the field out", m.Name, m.Fabric.Kind,
			f.Kind)
	case gpu > 0 && m != nil && m.Fabric == nil:
		p.fail(at, "order", "no fabric of machines of type %s is known: an Environment's machines may say it", m.Name)
	case f.Kind == job.FabricEFA && !slices.Contains(cards, job.DeviceEFA):
		p.fail(at, "requires", "efa without adapters: set spec.resources.machine with gpu, or write how many a worker "+
			"has, in spec.resources.devices[%q]", job.DeviceEFA)
	case len(cards) == 0 && (m == nil || gpu == 0 || len(m.Fabric.Devices) > 0):
		p.fail(at, "requires", "%s without devices: set spec.resources.machine with gpu, or write the resource of the "+
			"device plugin and how many a worker has, as in spec.resources.devices[\"rdma/ib\"]", f.Kind)
	case f.LocksMemory() && user.Number != nil && !user.Is(0):
		p.fail(at, "requires", "%s pins memory, which takes the capability IPC_LOCK, and a process that is not root "+
			"has none: set spec.security.runAsUser to 0 (or to image, where the image's user is root); or, where the "+
			"nodes' container runtime does not limit locked memory, say memlock: unlimited of the machine in an "+
			"Environment; or set network.fabric to none", f.Kind)
	}
}

// tpuTopology holds the chips of the workers of a slice against those of the slice that GKE makes of a topology: the
// workers of one that is not whole wait for ever, and those of a Job with two know no second one. A host that is a
// slice by itself has no others.
func tpuTopology(p *Problems, tpu bool, gpu int64, selector map[string]string, w *job.Workers) {
	const at = "spec.placement.nodeSelector"
	topology, chips := selector[machine.TpuTopologyLabel], int64(1)
	if !tpu || topology == "" { // a queue may name the nodes
		return
	}
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.ParseInt(side, 10, 32)
		if err != nil || n < 1 {
			p.failKey(at, machine.TpuTopologyLabel, "format",
				"%q is no topology: the sides of a slice in chips, such as 2x4 or 4x4x4", topology)
			return
		}
		chips *= n
	}
	if chips == gpu || w.Replicas == 0 {
		return
	}
	workers := int64(w.SliceSize())
	if all := workers * gpu; chips > 1<<20 || all != chips {
		p.fail(at, "order", "a slice of %s has %d chips, and %d workers with %d each have %d: set "+
			"spec.workers.replicas to %d for each slice, and spec.workers.slices to how many there are", topology,
			chips, workers, gpu, all, max(1, chips/gpu))
	}
}

// policies refuses what no NetworkPolicy says.
func policies(p *Problems, n *job.Network) {
	written := func(field string) bool {
		node := p.Node("spec.network." + field)
		return node != nil && !node.Merged && node.At.Line > 0 // no default
	}
	for _, field := range []string{"allowFrom", "egress", "allowTo"} {
		if !n.Policy && written(field) && written("policy") {
			p.fail("spec.network."+field, "requires", "a NetworkPolicy says it, and policy is false: leave one out")
		}
	}
	if n.Host && n.Limits() {
		p.fail("spec.network.egress", "requires", "pods on their node's network connect as the node does, which no "+
			"NetworkPolicy closes: leave it out, or host")
	}
	if len(n.AllowTo) > 0 && !n.Limits() {
		p.fail("spec.network.allowTo", "requires", "egress %s lets them connect there already: set egress: closed, or "+
			"leave it out", n.Egress)
	}
}

// peers refuses a peer that is nobody, or two things at a time.
func peers(p *Problems, n *job.Network) {
	for field, list := range map[string][]job.Peer{"allowFrom": n.AllowFrom, "allowTo": n.AllowTo} {
		for i, peer := range list {
			at := fmt.Sprintf("spec.network.%s[%d]", field, i)
			pods := peer.Namespace != "" || len(peer.NamespaceLabels) > 0 || len(peer.Pods) > 0
			switch {
			case peer.CIDR != "" && pods:
				p.fail(at+".cidr", "one-of", "addresses or pods: give each an item of its own")
			case peer.CIDR == "" && !pods:
				p.fail(at, "requires", "says of nobody: give namespace, namespaceLabels, pods or cidr")
			case peer.Namespace != "" && len(peer.NamespaceLabels) > 0:
				p.fail(at+".namespaceLabels", "one-of", "only one of namespace, namespaceLabels may be given")
			}
			prefix, err := netip.ParsePrefix(peer.CIDR)
			if peer.CIDR != "" && (err != nil || prefix != prefix.Masked()) {
				p.fail(at+".cidr", "format", "%q is no range of addresses: write its first address and the length, "+
					"such as 10.0.0.0/16", peer.CIDR)
			}
		}
	}
}

// scriptReach refuses a job whose pods fetch their script from where they may not connect to.
func scriptReach(p *Problems, n *job.Network, script *job.Script) {
	if n.Policy && n.Limits() && script != nil && script.S3 != "" && !n.Web() {
		p.fail("spec.network.egress", "requires", "with %s no worker reaches S3, where spec.script is: add to allowTo "+
			"the addresses of its endpoint, with port 443", n.Egress)
	}
}

// podMonitor refuses what only a PodMonitor says.
func podMonitor(p *Problems, m *job.Metrics) {
	// An Environment may take the PodMonitor away, and with it these.
	if n := p.Node("spec.metrics.podMonitor"); m == nil || n != nil && n.Text == "true" {
		return
	}
	for _, field := range []string{"path", "interval"} {
		if at := "spec.metrics." + field; p.IsSet(at) {
			p.fail(at, "requires", "only a PodMonitor says it: set podMonitor: true, or leave it out")
		}
	}
}
