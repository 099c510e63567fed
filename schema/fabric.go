package schema

import (
	"maps"
	"slices"
	"strings"
)

// The kinds of fabric that job.cue names.
const (
	FabricEFA        = "efa"
	FabricInfiniBand = "infiniband"
	FabricRoCE       = "roce"
)

// DeviceEFA is the resource of AWS's device plugin for EFA.
const DeviceEFA = "vpc.amazonaws.com/efa"

// hugePages starts the names of resources that are memory.
const hugePages = "hugepages-"

// memlockUnlimited is the word for nodes whose runtime does not limit locked memory.
const memlockUnlimited = "unlimited"

// Fabric mirrors #Machine.fabric: a network of machines, and what its libraries need in a pod.
type Fabric struct {
	Kind        string            `json:"kind"`
	Devices     map[string]int64  `json:"devices,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Network     string            `json:"network,omitempty"`
	HostPaths   map[string]string `json:"hostPaths,omitempty"`
	Memlock     string            `json:"memlock,omitempty"`
}

// fabricOf is what a kind of fabric needs where no machine says more. On EFA's nodes locked memory has no limit: the
// AMI of EKS lifts it (awslabs/amazon-eks-ami#595), and Bottlerocket where an adapter is attached
// (bottlerocket-core-kit#141). Of its variables those of libfabric 1.18 and newer are left
// (awsome-distributed-training, 1.architectures/efa-cheatsheet.md); the provider is named so that a job without
// adapters fails, and does not crawl.
func fabricOf(kind string) *Fabric {
	if kind == FabricEFA {
		return &Fabric{Kind: kind, Env: map[string]string{"FI_PROVIDER": "efa"}, Memlock: memlockUnlimited}
	}
	return &Fabric{Kind: kind}
}

// Fabric is that of the workers, nil where they have none.
func (j *Job) Fabric() *Fabric {
	kind := j.Spec.Network.Fabric
	if kind == "" || kind == None {
		return nil
	}
	f := *fabricOf(kind)
	if m := j.machine; m != nil && m.Fabric != nil && m.Fabric.Kind == kind {
		env := f.Env
		f = *m.Fabric
		if f.Env == nil {
			f.Env = env
		}
		if f.Memlock == "" {
			f.Memlock = fabricOf(kind).Memlock
		}
	}
	// Without pages of its own a pod may not take any, and a process that forks, as torch's data loaders do, may run
	// out of them: libfabric then uses ordinary memory.
	if _, ok := j.Spec.Resources.Devices[hugePages+"2Mi"]; kind == FabricEFA && !ok {
		f.Env = maps.Clone(f.Env)
		f.Env["FI_EFA_USE_HUGE_PAGE"] = "0"
	}
	return &f
}

// LocksMemory says whether processes need the capability to pin memory for the fabric's cards.
func (f *Fabric) LocksMemory() bool { return f != nil && f.Memlock != memlockUnlimited }

// cards are the devices of a worker that are no huge pages, by name.
func (r *Resources) cards() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Devices)) {
		if !strings.HasPrefix(name, hugePages) {
			names = append(names, name)
		}
	}
	return names
}

// Networks are the networks of Multus that a worker joins, one for each of its devices.
func (j *Job) Networks() string {
	f := j.Fabric()
	if f == nil || f.Network == "" {
		return ""
	}
	var all []string
	for name := range f.Devices {
		q := j.Spec.Resources.Devices[name]
		all = append(all, slices.Repeat([]string{f.Network}, int(q.Value()))...)
	}
	return strings.Join(all, ",")
}
