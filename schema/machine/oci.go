package machine

import (
	"maps"
	"sync"

	"github.com/tegen-dev/tegen/schema/job"
)

// machinesOCI are shapes of Oracle with RoCE by virtual functions of NVIDIA's network operator, so that no pod needs
// the node's network: their numbers and the network of Multus are those of oracle-quickstart/oci-hpc-oke
// (docs/using-rdma-network-interfaces-in-manifests.md), their variables those of
// docs/recommended-nccl-rccl-parameters-by-shape.md, and locked memory has no limit by files/oke-ubuntu-cloud-init.sh.
// Those of GB200 and GB300 are not here: they have no virtual functions, and their pods take the node's network and
// devices, in a privileged container.
var machinesOCI = sync.OnceValue(func() []job.Machine {
	return []job.Machine{
		oci("BM.GPU4.8", 16, job.DefaultGPUResource, map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4"}),
		oci("BM.GPU.A100-v2.8", 16, job.DefaultGPUResource, map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4"}),
		oci("BM.GPU.H100.8", 16, job.DefaultGPUResource, ociHopper),
		oci("BM.GPU.H200.8", 8, job.DefaultGPUResource, ociHopper),
		oci("BM.GPU.B200.8", 8, job.DefaultGPUResource, ociHopper),
		oci("BM.GPU.B300.8", 16, job.DefaultGPUResource, ociHopper),
		oci("BM.GPU.MI300X.8", 8, GpuAMD, map[string]string{
			"NCCL_CUMEM_ENABLE": "0", "NCCL_IB_QPS_PER_CONNECTION": "1", "NCCL_PXN_DISABLE": "0",
			"NCCL_NET_PLUGIN": "none",
		}),
	}
})

var ociHopper = map[string]string{
	"NCCL_CUMEM_ENABLE": "0", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IGNORE_CPU_AFFINITY": "1",
}

// oci is a shape of eight GPUs and some virtual functions, with variables beside those of all shapes.
func oci(name string, functions int64, resource string, env map[string]string) job.Machine {
	all := map[string]string{
		"NCCL_IB_HCA": "mlx5", "NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "41", "NCCL_IB_SL": "0",
		"NCCL_IB_TIMEOUT": "22", "NCCL_IB_SPLIT_DATA_ON_QPS": "0",
	}
	maps.Copy(all, env)
	return job.Machine{
		Name: name, GPU: 8, GPUResource: resource, NodeSelector: map[string]string{instanceType: name},
		Tolerations: tolerated(resource),
		Fabric: &job.Fabric{
			Kind: job.FabricRoCE, Devices: map[string]int64{"nvidia.com/rdma-vf": functions}, Env: all,
			Network: "default/rdma-vf", Memlock: job.MemlockUnlimited,
		},
	}
}
