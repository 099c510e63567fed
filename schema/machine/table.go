// Package machine knows the machine types of clouds that resources.machine names.
package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/job"
)

// Page is docs/machines.md: the table of machine types.
func Page() string {
	var b strings.Builder
	b.WriteString("# Machine types\n\n" +
		"<!-- Written by 'make golden' of schema/machines_*.go, which has the sources. -->\n\n" +
		"`resources.machine` names one of these, or one of an Environment's `machines`, which replaces a row of the\n" +
		"same name. A worker with some of the accelerators has as large a share of CPU, memory and cards; shared\n" +
		"memory may be half of the memory. What follows from a machine, a job's own field replaces.\n\n" +
		"CPU and memory are what workers share: a twentieth less than a kubelet offers (AWS), a tenth less than the\n" +
		"machine has (Azure), and left to the job or the Environment where there is none. Variables of the fabric's\n" +
		"libraries are in `tegen render`; IPC_LOCK comes with those fabrics whose nodes limit locked memory, and\n" +
		"needs `security.runAsUser: 0` or `image`.\n\n" +
		"Devices that a driver of dynamic resource allocation offers need no other words. Since Kubernetes 1.36\n" +
		"(gate DRAExtendedResource) a DeviceClass may have the name of a device plugin's resource, in\n" +
		"`extendedResourceName`, and jobs stay as they are; any class is\n" +
		"`gpuResource: deviceclass.resource.kubernetes.io/<class>`. Elsewhere `resources.deviceClass` renders a\n" +
		"ResourceClaimTemplate of `gpu` devices, of which `deviceSelectors` may ask more in CEL; `resources.claims`\n" +
		"names templates that exist, such as that of a ComputeDomain's channel on GB200.\n\n" +
		"| machine | accelerators | processes each | CPU | memory | fabric | cards | IPC_LOCK |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, m := range All() {
		fabric, cards, lock := "", "", ""
		if f := m.Fabric; f != nil {
			fabric = f.Kind
			for _, name := range slices.Sorted(maps.Keys(f.Devices)) {
				cards += fmt.Sprintf("%d `%s`", f.Devices[name], name)
			}
			if f.LocksMemory() {
				lock = "yes"
			}
		}
		cpu, memory := "", ""
		if share := m.Share(m.GPU); m.CPU != nil {
			cpu, memory = share["cpu"], share["memory"]
		}
		fmt.Fprintf(&b, "| `%s` | %d `%s` | %d | %s | %s | %s | %s | %s |\n", m.Name, m.GPU, m.Accelerator(),
			max(m.Processes, 1), cpu, memory, fabric, cards, lock)
	}
	return b.String()
}

// All are the types of machines that are known by name, each with the source of its figures. What no source says
// is left out. docs/machines.md lists them.
var All = sync.OnceValue(func() []job.Machine {
	return slices.Concat(MachinesAWS(), machinesAzure(), MachinesGKE(), machinesOCI())
})

// A node keeps some of what its kubelet offers, for the pods of DaemonSets and for huge pages: a twentieth; and of the
// machine's own amounts, where no source has better ones, a tenth. An Environment knows better.
const keptOfAllocatable, keptOfCapacity = 20, 10

// allocatable is what workers may share of what a kubelet offers, in thousandths of a CPU and Mi.
func allocatable(milli, mebibytes int64) (cpu, memory *resource.Quantity) {
	return amounts(milli-milli/keptOfAllocatable, mebibytes-mebibytes/keptOfAllocatable)
}

// capacity is what workers may share of a machine, in CPUs and Gi.
func capacity(cpus, gibibytes int64) (cpu, memory *resource.Quantity) {
	milli, mebibytes := cpus*1000, gibibytes<<10
	return amounts(milli-milli/keptOfCapacity, mebibytes-mebibytes/keptOfCapacity)
}

func amounts(milli, mebibytes int64) (cpu, memory *resource.Quantity) {
	return resource.NewMilliQuantity(milli, resource.DecimalSI),
		resource.NewQuantity(mebibytes<<20, resource.BinarySI)
}

// Resources of accelerators that are not NVIDIA's: those of their vendors' device plugins.
const (
	GpuAMD       = "amd.com/gpu"
	NeuronDevice = "aws.amazon.com/neuron"
	gaudiCard    = "habana.ai/gaudi"
	TpuChip      = "google.com/tpu"
)

// instanceType is the label by which cloud providers name a node's type of machine.
const instanceType = "node.kubernetes.io/instance-type"

// tolerated is the taint that keeps other pods from nodes with accelerators.
func tolerated(key string) []job.Toleration {
	return []job.Toleration{{Key: key, Operator: "Exists", Effect: "NoSchedule"}}
}
