package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
)

// The kinds of fabric that job.cue names.
const (
	FabricEFA        = "efa"
	FabricInfiniBand = "infiniband"
	FabricRoCE       = "roce"
)

// DeviceEFA is the resource of AWS's device plugin for EFA.
const DeviceEFA = "vpc.amazonaws.com/efa"

// HugePages starts the names of resources that are memory.
const HugePages = "hugepages-"

// MemlockUnlimited is the word for nodes whose runtime does not limit locked memory.
const MemlockUnlimited = "unlimited"

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

// FabricOf is what a kind of fabric needs where no machine says more. On EFA's nodes locked memory has no limit: the
// AMI of EKS lifts it (awslabs/amazon-eks-ami#595), and Bottlerocket where an adapter is attached
// (bottlerocket-core-kit#141). Of its variables those of libfabric 1.18 and newer are left
// (awsome-distributed-training, 1.architectures/efa-cheatsheet.md); the provider is named so that a job without
// adapters fails, and does not crawl.
func FabricOf(kind string) *Fabric {
	if kind == FabricEFA {
		return &Fabric{Kind: kind, Env: map[string]string{"FI_PROVIDER": "efa"}, Memlock: MemlockUnlimited}
	}
	return &Fabric{Kind: kind}
}

// Fabric is that of the workers, nil where they have none.
func (j *Job) Fabric() *Fabric {
	kind := j.Spec.Network.Fabric
	if kind == "" || kind == None {
		return nil
	}
	f := *FabricOf(kind)
	if m := j.Origin.Machine; m != nil && m.Fabric != nil && m.Fabric.Kind == kind {
		env := f.Env
		f = *m.Fabric
		if f.Env == nil {
			f.Env = env
		}
		if f.Memlock == "" {
			f.Memlock = FabricOf(kind).Memlock
		}
	}
	// Without pages of its own a pod may not take any, and a process that forks, as torch's data loaders do, may run
	// out of them: libfabric then uses ordinary memory.
	if _, ok := j.Spec.Resources.Devices[HugePages+"2Mi"]; kind == FabricEFA && !ok {
		f.Env = maps.Clone(f.Env)
		f.Env["FI_EFA_USE_HUGE_PAGE"] = "0"
	}
	return &f
}

// LocksMemory says whether processes need the capability to pin memory for the fabric's cards.
func (f *Fabric) LocksMemory() bool { return f != nil && f.Memlock != MemlockUnlimited }

// Cards are the devices of a worker that are no huge pages, by name.
func (r *Resources) Cards() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Devices)) {
		if !strings.HasPrefix(name, HugePages) {
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

// The words of network.egress.
const (
	EgressOpen      = "open"
	EgressNamespace = "namespace"
	EgressCluster   = "cluster"
	EgressClosed    = "closed"
)

// Peer mirrors #Peer: pods by their namespaces and labels, or a range of addresses.
type Peer struct {
	Namespace       string            `json:"namespace,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	Pods            map[string]string `json:"pods,omitempty"`
	CIDR            string            `json:"cidr,omitempty"`
	Ports           []int32           `json:"ports"`
}

// Metrics mirrors #Metrics.
type Metrics struct {
	Port       int32            `json:"port"`
	PodMonitor bool             `json:"podMonitor"`
	Path       string           `json:"path,omitempty"`
	Interval   *metav1.Duration `json:"interval,omitempty"`
}

// Limits says whether egress is closed to more than the job itself needs.
func (n *Network) Limits() bool { return n.Egress == EgressCluster || n.Egress == EgressClosed }

// Web says whether port 443 is open to some addresses.
func (n *Network) Web() bool { return n.Opens(443) }

// Opens says whether a port is open to some addresses.
func (n *Network) Opens(port int32) bool {
	return slices.ContainsFunc(n.AllowTo, func(p Peer) bool { return p.CIDR != "" && slices.Contains(p.Ports, port) })
}

// OpenStore is the note on a store that nothing but a NetworkPolicy keeps others from, where the job has none: "" for
// any other. Of pods on their node's network no policy holds.
func (s *Spec) OpenStore() string {
	z, port := &s.Rendezvous, int32(names.C10dPort)
	open := map[string]string{StoreWorker: "worker 0", StoreCompanion: "the companion", StoreEtcd: "the etcd"}[z.Store]
	guarded := s.Network.Policy && (!s.Network.Host || z.Store != StoreWorker)
	encrypted := s.MakesCertificates() || z.Store == StoreEtcd && z.Etcd.TLS != nil
	if guarded || encrypted || open == "" {
		return ""
	}
	if z.Store == StoreEtcd || z.Backend != BackendC10d {
		port = names.EtcdClientPort
	}
	field := "policy: false"
	if s.Network.Policy {
		field = "host: true"
	}
	return fmt.Sprintf("no NetworkPolicy of the job guards the rendezvous, %s on port %d. Access to it is code "+
		"execution in every worker, because torch unpickles what it reads there. Remove %s, or close the port by "+
		"other means", open, cmp.Or(z.Port, port), field)
}

// HostStore is the note on the stores beside that of the rendezvous that workers open on their node's network: each
// proxy has one for its torchrun, and torch has one for the processes of a world. Neither has a password.
func (s *Spec) HostStore() string {
	switch {
	case !s.Network.Host:
		return ""
	case s.Proxied():
		return "the store between each proxy and its torchrun listens on 127.0.0.1 of its node, without a password. " +
			"Every process on that node's network can connect to it, also other pods with hostNetwork. Access to it " +
			"is code execution in the worker, because torch unpickles what it reads there. Remove host: true, or run " +
			"no other pods with hostNetwork that you do not trust on these nodes"
	case s.Rendezvous.Store == StoreWorker: // for which there is a note
		return ""
	}
	return "no NetworkPolicy of the job guards the store that torch opens for the training processes on the node of " +
		"worker 0. Access to it is code execution in them, because torch unpickles what it reads there. Remove " +
		"host: true, or close the ports of these nodes by other means"
}

// VisitedStores are notes on who else may connect to the store of worker 0: allowFrom is for all workers, by port.
func (s *Spec) VisitedStores() (notes []string) {
	port := cmp.Or(s.Rendezvous.Port, int32(names.C10dPort))
	if s.Rendezvous.Store != StoreWorker || !s.Network.Policy || s.Network.Host {
		return nil
	}
	for i, p := range s.Network.AllowFrom {
		if slices.Contains(p.Ports, port) {
			notes = append(notes, fmt.Sprintf("spec.network.allowFrom[%d].ports: port %d is that of the rendezvous, "+
				"which worker 0 serves. Access to it is code execution in every worker, because torch unpickles what "+
				"it reads there. Remove this port", i, port))
		}
	}
	return notes
}
