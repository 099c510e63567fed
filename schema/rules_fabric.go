package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var fabricRules = []rule{
	{(*validation).tpuTopology, "resources.machine resources.gpu resources.gpuResource placement.nodeSelector workers"},
	{(*validation).machineType, "resources.machine resources.gpu resources.gpuResource"},
	{
		(*validation).devices,
		"resources.devices resources.gpu resources.gpuResource resources.cpu resources.memory resources.requests " +
			"resources.limits",
	},
	{(*validation).deviceClaims, "resources.deviceClass resources.gpuResource resources.gpu groups"},
	{
		(*validation).fabric,
		"network.fabric resources.machine resources.devices resources.gpu security.runAsUser workers.max",
	},
}

// machineType refuses a machine that nobody knows, and more accelerators than one has.
func (r *validation) machineType() {
	const at = "spec.resources.machine"
	res, m := &r.Spec.Resources, r.machine
	switch {
	case res.Machine == "":
	case m == nil:
		near := ""
		if name := nearestMachine(res.Machine, nil); name != "" {
			near = fmt.Sprintf("; %s is one", name)
		}
		r.fail(at, "unknown", "%q is in neither docs/machines.md nor the Environment's machines%s", res.Machine, near)
	case res.GPU == 0 && r.asked.gpu == 0 && !r.Root.Below("spec", "resources", "machine").Merged:
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
func (r *validation) devices() {
	const at = "spec.resources.devices"
	res := &r.Spec.Resources
	for name, q := range res.Devices {
		switch {
		case strings.HasPrefix(name, hugePages):
			r.pages(name, q)
		case name == res.GPUResource && res.GPU > 0:
			r.failKey(at, name, "duplicate", "is spec.resources.gpuResource already, of which gpu says how many")
		case q.Format == resource.BinarySI:
			r.fail(at+"."+name, "format", "%s is an amount of memory: of devices write a number", q.String())
		}
	}
}

// pages refuses an amount of huge pages that is not a multiple of the page, or that no other amount stands beside.
func (r *validation) pages(name string, q resource.Quantity) {
	const at = "spec.resources.devices"
	page := resource.MustParse(strings.TrimPrefix(name, hugePages))
	asked := r.Spec.Resources.Requested()
	switch _, cpu := asked[resourceCPU]; {
	case q.Format != resource.BinarySI || page.Value() == 0 || q.Value()%page.Value() != 0:
		r.failKey(at, name, "format", "%s is no multiple of the page, in Mi or Gi", q.String())
	case !cpu && r.Spec.Resources.MemoryLimit() == nil:
		if _, memory := asked[resourceMemory]; !memory {
			r.failKey(at, name, "requires", "an API server admits huge pages only beside cpu or memory: say one of "+
				"them")
		}
	}
}

// fabric holds the word against the machine's, the devices and the user.
func (r *validation) fabric() {
	const at = "spec.network.fabric"
	s, m, f := &r.Spec, r.machine, r.Fabric()
	switch {
	case f == nil:
	case s.Resources.GPU > 0 && m != nil && m.Fabric != nil && m.Fabric.Kind != f.Kind:
		r.fail(at, "order", "the machines of type %s have %s, and not %s: leave the field out", m.Name, m.Fabric.Kind,
			f.Kind)
	case s.Resources.GPU > 0 && m != nil && m.Fabric == nil:
		r.fail(at, "order", "no fabric of machines of type %s is known: an Environment's machines may say it", m.Name)
	case f.Kind == FabricEFA && !slices.Contains(s.Resources.cards(), DeviceEFA):
		r.fail(at, "requires", "efa without adapters: set spec.resources.machine with gpu, or write how many a worker "+
			"has, in spec.resources.devices[%q]", DeviceEFA)
	case len(s.Resources.cards()) == 0 && (m == nil || s.Resources.GPU == 0 || len(m.Fabric.Devices) > 0):
		r.fail(at, "requires", "%s without devices: set spec.resources.machine with gpu, or write the resource of the "+
			"device plugin and how many a worker has, as in spec.resources.devices[\"rdma/ib\"]", f.Kind)
	case f.LocksMemory() && s.Security.RunAsUser.Number != nil && !s.Security.RunAsUser.Is(0):
		r.fail(at, "requires", "%s pins memory, which takes the capability IPC_LOCK, and a process that is not root "+
			"has none: set spec.security.runAsUser to 0 (or to image, where the image's user is root); or, where the "+
			"nodes' container runtime does not limit locked memory, say memlock: unlimited of the machine in an "+
			"Environment; or set network.fabric to none", f.Kind)
	}
}

// fabricOfJob is where a job says that it has a fabric.
func fabricOfJob(j *Written) []string {
	if j.IsSet("spec.network.fabric") {
		return when(j.Fabric() != nil, "network.fabric")
	}
	return when(j.Fabric() != nil, "resources.machine")
}

// tpuTopology holds the chips of the workers of a slice against those of the slice that GKE makes of a topology: the
// workers of one that is not whole wait for ever, and those of a Job with two know no second one. A host that is a
// slice by itself has no others.
func (r *validation) tpuTopology() {
	s := &r.Spec
	const at = "spec.placement.nodeSelector"
	topology, chips := s.Placement.NodeSelector[tpuTopologyLabel], int64(1)
	if s.Resources.GPU == 0 || s.Resources.GPUResource != tpuChip || topology == "" { // a queue may name the nodes
		return
	}
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.ParseInt(side, 10, 32)
		if err != nil || n < 1 {
			r.failKey(at, tpuTopologyLabel, "format", "%q is no topology: the sides of a slice in chips, such as 2x4 "+
				"or 4x4x4", topology)
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
