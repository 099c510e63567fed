package machine

import (
	"sync"

	"github.com/tegen-dev/tegen/schema/job"
)

// machinesAzure are virtual machines of Azure with InfiniBand. CPU, memory, accelerators and cards are those of Azure's
// pages of the series (MicrosoftDocs/azure-compute-docs, articles/virtual-machines/sizes/gpu-accelerated). The resource
// of the cards, each of which a pod has for itself, is that of Azure/aks-rdma-infiniband
// (website/docs/configurations/01-network-operator.md), whose tests add IPC_LOCK.
var machinesAzure = sync.OnceValue(func() []job.Machine {
	return []job.Machine{
		azure("Standard_ND96asr_v4", 8, 96, 900, job.DefaultGPUResource),
		azure("Standard_ND96amsr_A100_v4", 8, 96, 1900, job.DefaultGPUResource),
		azure("Standard_ND96isr_H100_v5", 8, 96, 1900, job.DefaultGPUResource),
		azure("Standard_ND96isr_H200_v5", 8, 96, 1850, job.DefaultGPUResource),
		azure("Standard_ND96isr_MI300X_v5", 8, 96, 1850, GpuAMD),
		azure("Standard_ND128isr_NDR_GB200_v6", 4, 128, 900, job.DefaultGPUResource),
	}
})

// azure is a virtual machine with a card of InfiniBand for each GPU.
func azure(name string, gpus, cpus, gibibytes int64, resource string) job.Machine {
	m := job.Machine{
		Name: name, GPU: gpus, GPUResource: resource,
		NodeSelector: map[string]string{instanceType: name},
		Tolerations:  tolerated(resource),
		Fabric:       &job.Fabric{Kind: job.FabricInfiniBand, Devices: map[string]int64{"rdma/ib": gpus}},
	}
	m.CPU, m.Memory = capacity(cpus, gibibytes)
	return m
}
