package job

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Machine mirrors #Machine: one type of machine, of the built-in table or of an Environment.
type Machine struct {
	Name         string             `json:"name"`
	GPU          int64              `json:"gpu"`
	GPUResource  string             `json:"gpuResource,omitempty"`
	CPU          *resource.Quantity `json:"cpu,omitempty"`
	Memory       *resource.Quantity `json:"memory,omitempty"`
	Processes    int64              `json:"processes,omitempty"` // for each accelerator; 0 is 1
	RuntimeClass string             `json:"runtimeClass,omitempty"`
	NodeSelector map[string]string  `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration       `json:"tolerations,omitempty"`
	Fabric       *Fabric            `json:"fabric,omitempty"`
}

// DefaultGPUResource is that of defaults.cue.
const DefaultGPUResource = "nvidia.com/gpu"

// Accelerator is the resource name of the machine's accelerators.
func (m *Machine) Accelerator() string {
	if m.GPUResource == "" {
		return DefaultGPUResource
	}
	return m.GPUResource
}

// Share is what a worker with some of the machine's accelerators has of the rest, rounded down so that a machine full
// of such workers has room for all. Shared memory may be half of the memory, which is what Linux itself allows.
func (m *Machine) Share(count int64) map[string]string {
	share := map[string]string{}
	if m.CPU != nil {
		milli := m.CPU.MilliValue() * count / m.GPU
		if milli > 1000 {
			milli -= milli % 1000
		}
		share["cpu"] = resource.NewMilliQuantity(milli, resource.DecimalSI).String()
	}
	if m.Memory != nil {
		bytes := floored(m.Memory.Value()*count/m.GPU, 1<<30)
		share["memory"] = resource.NewQuantity(bytes, resource.BinarySI).String()
		share["shm"] = SharedMemory(bytes)
	}
	return share
}

// SharedMemory is half of a worker's memory.
func SharedMemory(bytes int64) string {
	return resource.NewQuantity(floored(bytes/2, 1<<30), resource.BinarySI).String()
}

// floored rounds down to a multiple of a unit where that leaves anything.
func floored(n, unit int64) int64 {
	if n < unit {
		return n
	}
	return n - n%unit
}

// WithoutCards says why workers with some of the machine's accelerators have no card of it, "" where they have one.
// Networks by annotation are joined whole, and of those with RDMA each by one pod of a node.
func (m *Machine) WithoutCards(gpus int64) string {
	const remedy = ": write gpu: %d, or network.fabric: %s with what a worker has in resources.devices, or none"
	f := m.Fabric
	for _, all := range f.Devices {
		if all*gpus/m.GPU > 0 {
			return ""
		}
	}
	switch {
	case gpus == m.GPU:
		return ""
	case len(f.Devices) > 0:
		return fmt.Sprintf("its cards are fewer than such workers"+remedy, m.GPU, f.Kind)
	case len(f.Annotations) > 0:
		return fmt.Sprintf("one pod of a node has all of its cards: write gpu: %d, or network.fabric: %s where each "+
			"node runs one worker, or none", m.GPU, f.Kind)
	}
	return ""
}

// CoresEach is how many processes one of the workers' accelerators has by default. MXNet uses all of a worker's in one
// process, and where pods are processes nobody starts more.
func (j *Job) CoresEach() int32 {
	s, m := &j.Spec, j.Origin.Machine
	if m == nil || m.Processes == 0 || s.Resources.GPU == 0 || s.DefaultProcesses() != int32(s.Resources.GPU) ||
		s.Workers.Master || s.Framework == FrameworkMXNet {
		return 1
	}
	return int32(m.Processes)
}
