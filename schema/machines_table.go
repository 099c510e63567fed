package schema

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Machines are the types of machines that are known by name, each with the source of its figures. What no source says
// is left out. docs/machines.md lists them.
var Machines = sync.OnceValue(func() []Machine {
	return slices.Concat(machinesAWS(), machinesAzure(), machinesGKE(), machinesOCI())
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
	gpuAMD       = "amd.com/gpu"
	neuronDevice = "aws.amazon.com/neuron"
	gaudiCard    = "habana.ai/gaudi"
	tpuChip      = "google.com/tpu"
)

// instanceType is the label by which cloud providers name a node's type of machine.
const instanceType = "node.kubernetes.io/instance-type"

// tolerated is the taint that keeps other pods from nodes with accelerators.
func tolerated(key string) []Toleration {
	return []Toleration{{Key: key, Operator: "Exists", Effect: "NoSchedule"}}
}
