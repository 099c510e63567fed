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
)

var fabricRules = []oldRule{
	{(*Validation).tpuTopology, "resources.machine resources.gpu resources.gpuResource placement.nodeSelector workers"},
	{(*Validation).machineType, "resources.machine resources.gpu resources.gpuResource"},
	{
		(*Validation).devices,
		"resources.devices resources.gpu resources.gpuResource resources.cpu resources.memory resources.requests " +
			"resources.limits",
	},
	{(*Validation).deviceClaims, "resources.deviceClass resources.gpuResource resources.gpu groups"},
	{
		(*Validation).fabric,
		"network.fabric resources.machine resources.devices resources.gpu security.runAsUser workers.max",
	},
}

// machineType refuses a machine that nobody knows, and more accelerators than one has.
func (r *Validation) machineType() {
	const at = "spec.resources.machine"
	res, m := &r.Spec.Resources, r.Origin.Machine
	switch {
	case res.Machine == "":
	case m == nil:
		near := ""
		if name := nearestMachine(res.Machine, nil); name != "" {
			near = fmt.Sprintf("; %s is one", name)
		}
		r.fail(at, "unknown", "%q is in neither docs/machines.md nor the Environment's machines%s", res.Machine, near)
	case res.GPU == 0 && r.Origin.Asked.GPU == 0 && !r.Root.Below("spec", "resources", "machine").Merged:
		r.fail(at, "requires", "a worker without accelerators has no share of a machine: write how many it has, in "+
			"spec.resources.gpu")
	case res.GPU > m.GPU:
		r.fail("spec.resources.gpu", "order", "%s has %d accelerators: a worker with %d has no place on it", m.Name,
			m.GPU, res.GPU)
	case res.GPU > 0 && res.GPUResource != m.Accelerator():
		r.fail("spec.resources.gpuResource", "order", "the accelerators of %s are %s, and not %s: leave out this "+
			"field or machine", m.Name, m.Accelerator(), res.GPUResource)
	}
}

// devices refuses amounts that an API server refuses for a name.
func (r *Validation) devices() {
	const at = "spec.resources.devices"
	res := &r.Spec.Resources
	for name, q := range res.Devices {
		switch {
		case strings.HasPrefix(name, job.HugePages):
			r.pages(name, q)
		case name == res.GPUResource && res.GPU > 0:
			r.failKey(at, name, "duplicate", "is spec.resources.gpuResource already, of which gpu says how many")
		case q.Format == resource.BinarySI:
			r.fail(at+"."+name, "format", "%s is an amount of memory: of devices write a number", q.String())
		}
	}
}

// pages refuses an amount of huge pages that is not a multiple of the page, or that no other amount stands beside.
func (r *Validation) pages(name string, q resource.Quantity) {
	const at = "spec.resources.devices"
	page := resource.MustParse(strings.TrimPrefix(name, job.HugePages))
	asked := r.Spec.Resources.Requested()
	switch _, cpu := asked[job.ResourceCPU]; {
	case q.Format != resource.BinarySI || page.Value() == 0 || q.Value()%page.Value() != 0:
		r.failKey(at, name, "format", "%s is no multiple of the page, in Mi or Gi", q.String())
	case !cpu && r.Spec.Resources.MemoryLimit() == nil:
		if _, memory := asked[job.ResourceMemory]; !memory {
			r.failKey(at, name, "requires", "an API server admits huge pages only beside cpu or memory: say one of "+
				"them")
		}
	}
}

// fabric holds the word against the machine's, the devices and the user.
func (r *Validation) fabric() {
	const at = "spec.network.fabric"
	s, m, f := &r.Spec, r.Origin.Machine, r.Fabric()
	switch {
	case f == nil:
	case s.Resources.GPU > 0 && m != nil && m.Fabric != nil && m.Fabric.Kind != f.Kind:
		r.fail(at, "order", "the machines of type %s have %s, and not %s: leave the field out", m.Name, m.Fabric.Kind,
			f.Kind)
	case s.Resources.GPU > 0 && m != nil && m.Fabric == nil:
		r.fail(at, "order", "no fabric of machines of type %s is known: an Environment's machines may say it", m.Name)
	case f.Kind == job.FabricEFA && !slices.Contains(s.Resources.Cards(), job.DeviceEFA):
		r.fail(at, "requires", "efa without adapters: set spec.resources.machine with gpu, or write how many a worker "+
			"has, in spec.resources.devices[%q]", job.DeviceEFA)
	case len(s.Resources.Cards()) == 0 && (m == nil || s.Resources.GPU == 0 || len(m.Fabric.Devices) > 0):
		r.fail(at, "requires", "%s without devices: set spec.resources.machine with gpu, or write the resource of the "+
			"device plugin and how many a worker has, as in spec.resources.devices[\"rdma/ib\"]", f.Kind)
	case f.LocksMemory() && s.Security.RunAsUser.Number != nil && !s.Security.RunAsUser.Is(0):
		r.fail(at, "requires", "%s pins memory, which takes the capability IPC_LOCK, and a process that is not root "+
			"has none: set spec.security.runAsUser to 0 (or to image, where the image's user is root); or, where the "+
			"nodes' container runtime does not limit locked memory, say memlock: unlimited of the machine in an "+
			"Environment; or set network.fabric to none", f.Kind)
	}
}

// tpuTopology holds the chips of the workers of a slice against those of the slice that GKE makes of a topology: the
// workers of one that is not whole wait for ever, and those of a Job with two know no second one. A host that is a
// slice by itself has no others.
func (r *Validation) tpuTopology() {
	s := &r.Spec
	const at = "spec.placement.nodeSelector"
	topology, chips := s.Placement.NodeSelector[machine.TpuTopologyLabel], int64(1)
	// a queue may name the nodes
	if s.Resources.GPU == 0 || s.Resources.GPUResource != machine.TpuChip || topology == "" {
		return
	}
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.ParseInt(side, 10, 32)
		if err != nil || n < 1 {
			r.failKey(at, machine.TpuTopologyLabel, "format",
				"%q is no topology: the sides of a slice in chips, such as 2x4 or 4x4x4", topology)
			return
		}
		chips *= n
	}
	if chips == s.Resources.GPU || s.Workers.Replicas == 0 {
		return
	}
	workers := int64(s.Workers.SliceSize())
	if all := workers * s.Resources.GPU; chips > 1<<20 || all != chips {
		r.fail(at, "order", "a slice of %s has %d chips, and %d workers with %d each have %d: set "+
			"spec.workers.replicas to %d for each slice, and spec.workers.slices to how many there are", topology,
			chips, workers, s.Resources.GPU, all, max(1, chips/s.Resources.GPU))
	}
}

var networkRules = []oldRule{
	{(*Validation).policies, "network"},
	{(*Validation).peers, "network"},
	{(*Validation).outside, "network script identity"},
	{(*Validation).metrics, "metrics"},
}

// policies refuses what no NetworkPolicy says.
func (r *Validation) policies() {
	n := &r.Spec.Network
	written := func(field string) bool {
		node := r.Root.Below("spec", "network", field)
		return node != nil && !node.Merged && node.At.Line > 0 // no default
	}
	for _, field := range []string{"allowFrom", "egress", "allowTo"} {
		if !n.Policy && written(field) && written("policy") {
			r.fail("spec.network."+field, "requires", "a NetworkPolicy says it, and policy is false: leave one out")
		}
	}
	if n.Host && n.Limits() {
		r.fail("spec.network.egress", "requires", "pods on their node's network connect as the node does, which no "+
			"NetworkPolicy closes: leave it out, or host")
	}
	if len(n.AllowTo) > 0 && !n.Limits() {
		r.fail("spec.network.allowTo", "requires", "egress %s lets them connect there already: set egress: closed, or "+
			"leave it out", n.Egress)
	}
}

// peers refuses a peer that is nobody, or two things at a time.
func (r *Validation) peers() {
	n := &r.Spec.Network
	for field, list := range map[string][]job.Peer{"allowFrom": n.AllowFrom, "allowTo": n.AllowTo} {
		for i, p := range list {
			at := fmt.Sprintf("spec.network.%s[%d]", field, i)
			pods := p.Namespace != "" || len(p.NamespaceLabels) > 0 || len(p.Pods) > 0
			switch {
			case p.CIDR != "" && pods:
				r.fail(at+".cidr", "one-of", "addresses or pods: give each an item of its own")
			case p.CIDR == "" && !pods:
				r.fail(at, "requires", "says of nobody: give namespace, namespaceLabels, pods or cidr")
			case p.Namespace != "" && len(p.NamespaceLabels) > 0:
				r.fail(at+".namespaceLabels", "one-of", "only one of namespace, namespaceLabels may be given")
			}
			if prefix, err := netip.ParsePrefix(p.CIDR); p.CIDR != "" && (err != nil || prefix != prefix.Masked()) {
				r.fail(at+".cidr", "format", "%q is no range of addresses: write its first address and the length, "+
					"such as 10.0.0.0/16", p.CIDR)
			}
		}
	}
}

// outside refuses a job whose pods fetch their script from where they may not connect to.
func (r *Validation) outside() {
	if n := &r.Spec.Network; n.Policy && n.Limits() && r.Spec.Script != nil && r.Spec.Script.S3 != "" && !n.Web() {
		r.fail("spec.network.egress", "requires", "with %s no worker reaches S3, where spec.script is: add to allowTo "+
			"the addresses of its endpoint, with port 443", n.Egress)
	}
}

// metrics refuses what only a PodMonitor says.
func (r *Validation) metrics() {
	// An Environment may take the PodMonitor away, and with it these.
	if n := r.Root.Below("spec", "metrics", "podMonitor"); r.Spec.Metrics == nil || n != nil && n.Text == "true" {
		return
	}
	for _, field := range []string{"path", "interval"} {
		if r.IsSet("spec.metrics." + field) {
			r.fail("spec.metrics."+field, "requires", "only a PodMonitor says it: set podMonitor: true, or leave it "+
				"out")
		}
	}
}
