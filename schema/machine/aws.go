package machine

import (
	"sync"

	"github.com/tegen-dev/tegen/schema/job"
)

// MachinesAWS are instances of AWS. CPU, memory, accelerators and adapters are those of Karpenter's list of August 2026
// (aws/karpenter-provider-aws, website/content/en/docs/reference/instance-types.md), which is made of the EC2 API.
var MachinesAWS = sync.OnceValue(func() []job.Machine {
	return []job.Machine{
		aws("p3dn.24xlarge", 8, 95690, 718987, 1),
		aws("p4d.24xlarge", 8, 95690, 1082712, 4),
		aws("p4de.24xlarge", 8, 95690, 1082712, 4),
		aws("p5.4xlarge", 1, 15890, 240830, 1),
		aws("p5.48xlarge", 8, 191450, 1938410, 32),
		aws("p5e.48xlarge", 8, 191450, 1938410, 32),
		aws("p5en.48xlarge", 8, 191450, 1937332, 16),
		aws("p6-b200.48xlarge", 8, 191450, 1937332, 8),
		aws("p6-b300.48xlarge", 8, 191450, 3877198, 16),
		aws("g4dn.xlarge", 1, 3920, 14481, 0),
		aws("g4dn.2xlarge", 1, 7910, 29636, 0),
		aws("g4dn.4xlarge", 1, 15890, 59946, 0),
		aws("g4dn.8xlarge", 1, 31850, 120248, 1),
		aws("g4dn.12xlarge", 4, 47810, 178933, 1),
		aws("g4dn.16xlarge", 1, 63770, 241490, 1),
		aws("g5.xlarge", 1, 3920, 14162, 0),
		aws("g5.2xlarge", 1, 7910, 29317, 0),
		aws("g5.4xlarge", 1, 15890, 57691, 0),
		aws("g5.8xlarge", 1, 31850, 118312, 1),
		aws("g5.12xlarge", 4, 47810, 173400, 1),
		aws("g5.16xlarge", 1, 63770, 239554, 1),
		aws("g5.24xlarge", 4, 95690, 355262, 1),
		aws("g5.48xlarge", 8, 191450, 723299, 1),
		aws("g6.xlarge", 1, 3920, 14162, 0),
		aws("g6.2xlarge", 1, 7910, 29317, 0),
		aws("g6.4xlarge", 1, 15890, 57691, 0),
		aws("g6.8xlarge", 1, 31850, 118312, 1),
		aws("g6.12xlarge", 4, 47810, 178933, 1),
		aws("g6.16xlarge", 1, 63770, 234021, 1),
		aws("g6.24xlarge", 4, 95690, 355262, 1),
		aws("g6.48xlarge", 8, 191450, 718987, 1),
		aws("gr6.4xlarge", 1, 15890, 118312, 0),
		aws("gr6.8xlarge", 1, 31850, 239554, 1),
		aws("g6e.xlarge", 1, 3920, 29317, 0),
		aws("g6e.2xlarge", 1, 7910, 59627, 0),
		aws("g6e.4xlarge", 1, 15890, 118312, 0),
		aws("g6e.8xlarge", 1, 31850, 239554, 1),
		aws("g6e.12xlarge", 4, 47810, 360157, 1),
		aws("g6e.16xlarge", 1, 63770, 476504, 1),
		aws("g6e.24xlarge", 4, 95690, 721682, 2),
		aws("g6e.48xlarge", 8, 191450, 1449132, 4),
		aws("g7.2xlarge", 1, 7910, 27161, 0),
		aws("g7.4xlarge", 1, 15890, 54699, 0),
		aws("g7.8xlarge", 1, 31850, 113934, 1),
		aws("g7.12xlarge", 2, 47810, 173169, 1),
		aws("g7.24xlarge", 4, 95690, 346715, 1),
		aws("g7.48xlarge", 8, 191450, 718756, 2),
		aws("g7e.2xlarge", 1, 7910, 57471, 0),
		aws("g7e.4xlarge", 1, 15890, 115320, 0),
		aws("g7e.8xlarge", 1, 31850, 236562, 1),
		aws("g7e.12xlarge", 2, 47810, 477659, 1),
		aws("g7e.24xlarge", 4, 95690, 962625, 2),
		aws("g7e.48xlarge", 8, 191450, 1932558, 4),
		neuron("trn1.2xlarge", 1, 2, 7910, 29317, 0),
		neuron("trn1.32xlarge", 16, 2, 127610, 481894, 8),
		neuron("trn1n.32xlarge", 16, 2, 127610, 481894, 16),
		gaudi("dl1.24xlarge", 8, 95690, 718987, 4),
		// The runtime joins two of a chip's eight cores to one, unless NEURON_LOGICAL_NC_CONFIG says otherwise.
		neuron("trn2.48xlarge", 16, 4, 191450, 1938410, 16),
	}
})

// neuron is an instance with chips of AWS, each with several cores, and a process for each of them.
func neuron(name string, chips, cores, milli, mebibytes, adapters int64) job.Machine {
	m := aws(name, chips, milli, mebibytes, adapters)
	m.GPUResource, m.Processes, m.Tolerations = NeuronDevice, cores, tolerated(NeuronDevice)
	return m
}

// gaudi is an instance with cards of Habana, in Karpenter's lists until v1.12.
func gaudi(name string, cards, milli, mebibytes, adapters int64) job.Machine {
	m := aws(name, cards, milli, mebibytes, adapters)
	m.GPUResource, m.Tolerations = gaudiCard, tolerated(gaudiCard)
	return m
}

// aws is an instance with NVIDIA's GPUs and adapters of EFA, if any, in thousandths of a CPU and Mi that a kubelet
// offers.
func aws(name string, gpus, milli, mebibytes, adapters int64) job.Machine {
	m := job.Machine{
		Name: name, GPU: gpus,
		NodeSelector: map[string]string{instanceType: name},
		Tolerations:  tolerated(job.DefaultGPUResource),
	}
	m.CPU, m.Memory = allocatable(milli, mebibytes)
	if adapters > 0 {
		m.Fabric = job.FabricOf(job.FabricEFA)
		m.Fabric.Devices = map[string]int64{job.DeviceEFA: adapters}
	}
	return m
}
