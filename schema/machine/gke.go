package machine

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/schema/job"
)

// The labels by which GKE tells nodes with TPUs apart; a pod for TPUs names both.
const (
	tpuLabel         = "cloud.google.com/gke-tpu-accelerator"
	TpuTopologyLabel = "cloud.google.com/gke-tpu-topology"
)

// MachinesGKE are machine types of Google Cloud with their accelerators and, for TPUs, the label of their nodes
// (AI-Hypercomputer/xpk, src/xpk/core/system_characteristics.py). The cards of A3 High and Mega need a process beside
// each worker, and those of A4X a claim of an NVLink domain: an Environment, or the job, says them.
var MachinesGKE = sync.OnceValue(func() []job.Machine {
	return []job.Machine{
		gke("a3-highgpu-8g", 8),
		gke("a3-megagpu-8g", 8),
		withRDMA(gke("a3-ultragpu-8g", 8)),
		withRDMA(gke("a4-highgpu-8g", 8)),
		armed(gke("a4x-highgpu-4g", 4)),
		tpu("ct4p-hightpu-4t", 4, "tpu-v4-podslice"),
		tpu("ct5lp-hightpu-4t", 4, "tpu-v5-lite-podslice"),
		tpu("ct5p-hightpu-4t", 4, "tpu-v5p-slice"),
		tpu("ct6e-standard-4t", 4, "tpu-v6e-slice"),
		tpu("tpu7x-standard-4t", 4, "tpu7x"),
	}
})

func gke(name string, gpus int64) job.Machine {
	return job.Machine{
		Name: name, GPU: gpus, NodeSelector: map[string]string{instanceType: name},
		Tolerations: tolerated(job.DefaultGPUResource),
	}
}

// armed tolerates the taint that GKE puts on nodes with Arm processors.
func armed(m job.Machine) job.Machine {
	m.Tolerations = append(m.Tolerations,
		job.Toleration{Key: "kubernetes.io/arch", Operator: "Equal", Value: "arm64", Effect: "NoSchedule"})
	return m
}

// withRDMA gives a machine of eight GPUs its eight cards. Google's own manifests call their networks rdma-0 to rdma-7,
// and mount the libraries that its installer puts on the node, whose plugin of NCCL is called gIB
// (GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma/nccl-test.yaml and nccl-test-a4.yaml). Its script
// /usr/local/gib/scripts/set_nccl_env.sh has the rest of NCCL's variables, for the version that the node has.
func withRDMA(m job.Machine) job.Machine {
	const libraries = "/usr/local/gib"
	interfaces := []string{`{"interfaceName":"eth0","network":"default"}`}
	for i := range m.GPU {
		interfaces = append(interfaces, fmt.Sprintf(`{"interfaceName":"eth%d","network":"rdma-%d"}`, i+2, i))
	}
	m.Fabric = &job.Fabric{
		Kind: job.FabricRoCE,
		Annotations: map[string]string{
			"networking.gke.io/default-interface": "eth0",
			"networking.gke.io/interfaces":        "[" + strings.Join(interfaces, ",") + "]",
		},
		HostPaths: map[string]string{libraries: "/home/kubernetes/bin/gib"},
		Env: map[string]string{
			"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:" + libraries + "/lib64",
			"NCCL_NET":        "gIB", // without it a job whose nodes have no plugin crawls; with it, it says so
		},
		Memlock: job.MemlockUnlimited, // those manifests add no capability
	}
	return m
}

// tpu is a host of some chips of a slice; which slice, the job says by the topology.
func tpu(name string, chips int64, accelerator string) job.Machine {
	return job.Machine{
		Name: name, GPU: chips, GPUResource: TpuChip, NodeSelector: map[string]string{tpuLabel: accelerator},
		Tolerations: tolerated(TpuChip),
	}
}
