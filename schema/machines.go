package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
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

// defaultGPUResource is that of defaults.cue.
const defaultGPUResource = "nvidia.com/gpu"

// Accelerator is the resource name of the machine's accelerators.
func (m *Machine) Accelerator() string {
	if m.GPUResource == "" {
		return defaultGPUResource
	}
	return m.GPUResource
}

// machine finds a type by its name: one of the Environment, or else of the table. A nil Environment has none.
func (env *Environment) machine(name string) *Machine {
	for _, list := range [][]Machine{env.machines(), Machines()} {
		i := slices.IndexFunc(list, func(m Machine) bool { return m.Name == name })
		if i >= 0 {
			return &list[i]
		}
	}
	return nil
}

func (env *Environment) machines() []Machine {
	if env == nil {
		return nil
	}
	return env.Spec.Machines
}

// furnish gives workers with accelerators their share of the machine that the job or the Environment names, where the
// job itself does not say it. It returns the machine, nil where none is known.
func (env *Environment) furnish(spec *structural.Node) *Machine {
	trees := []*structural.Node{spec}
	if env != nil {
		says := env.root.Field("spec")
		trees = []*structural.Node{says.Field("overrides"), spec, says.Field("defaults")}
	}
	i := slices.IndexFunc(trees, func(n *structural.Node) bool { return n.Below("resources", "machine") != nil })
	if i < 0 {
		return nil
	}
	name, count := trees[i].Below("resources", "machine"), acceleratorsOf(trees...)
	m := env.machine(name.Text)
	if m == nil || count < 1 {
		return m
	}
	resources := sectionOf(spec, "resources", name.At)
	if resources.Kind != yamldoc.Map {
		return m
	}
	share := m.share(int64(count))
	for _, tree := range trees { // shared memory is a part of what the worker has
		if own := tree.Below("resources", "memory"); own != nil {
			if q, err := quantity.Parse(own.Text); err == nil && q.Value() > 0 {
				share["shm"] = sharedMemory(q.Value())
			}
			break
		}
	}
	share["gpuResource"] = m.Accelerator()
	for _, field := range slices.Sorted(maps.Keys(share)) {
		if resources.Entry(field) == nil {
			value := &structural.Node{Kind: yamldoc.String, Text: share[field], At: name.At}
			resources.Add(field, name.At, value.MarkMerged())
		}
	}
	return m
}

// share is what a worker with some of the machine's accelerators has of the rest, rounded down so that a machine full
// of such workers has room for all. Shared memory may be half of the memory, which is what Linux itself allows.
func (m *Machine) share(count int64) map[string]string {
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
		share["shm"] = sharedMemory(bytes)
	}
	return share
}

// sharedMemory is half of a worker's memory.
func sharedMemory(bytes int64) string {
	return resource.NewQuantity(floored(bytes/2, 1<<30), resource.BinarySI).String()
}

// floored rounds down to a multiple of a unit where that leaves anything.
func floored(n, unit int64) int64 {
	if n < unit {
		return n
	}
	return n - n%unit
}

// applyMachine gives the workers the nodes and the fabric of their machine. Where the place is anywhere, or takes all
// accelerators away, there is neither, nor any device.
func (j *Job) applyMachine(env *Environment) {
	s, m := &j.Spec, j.machine
	if env != nil && (env.Spec.Anywhere || j.asked.gpu > 0 && s.Resources.GPU == 0) {
		s.Resources.Devices, s.Resources.Claims, s.Network.Fabric = nil, nil, None
		return
	}
	if m == nil || s.Resources.GPU < 1 {
		if s.Network.Fabric == "" {
			s.Network.Fabric = None
		}
		return
	}
	nodes := &Accelerator{RuntimeClass: m.RuntimeClass, NodeSelector: m.NodeSelector}
	for _, t := range m.Tolerations {
		same := func(own Toleration) bool { return reflect.DeepEqual(own, t) }
		if !slices.ContainsFunc(s.Placement.Tolerations, same) {
			nodes.Tolerations = append(nodes.Tolerations, t)
		}
	}
	nodes.apply(&s.Placement)
	if s.Network.Fabric == "" && m.Fabric != nil && s.Workers.Max > 1 {
		s.Network.Fabric = m.Fabric.Kind
		if j.cardless = m.withoutCards(s.Resources.GPU); j.cardless != "" {
			s.Network.Fabric = None
		}
	}
	if s.Network.Fabric == "" {
		if m.Fabric == nil && s.Workers.Max > 1 && m.hasUnknownFabric() {
			j.cardless = "no row of that machine has one here: an Environment's machines may say its networks and " +
				"libraries, and network.fabric: none that TCP will do"
		}
		s.Network.Fabric = None
	}
	if m.Fabric == nil || m.Fabric.Kind != s.Network.Fabric {
		return
	}
	devices := map[string]resource.Quantity{}
	for name, all := range m.Fabric.Devices {
		if n := all * s.Resources.GPU / m.GPU; n > 0 {
			devices[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	maps.Copy(devices, s.Resources.Devices) // the job knows better
	s.Resources.Devices = devices
}

// withoutCards says why workers with some of the machine's accelerators have no card of it, "" where they have one.
// Networks by annotation are joined whole, and of those with RDMA each by one pod of a node.
func (m *Machine) withoutCards(gpus int64) string {
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

// hasUnknownFabric says whether a machine without a row for its cards has some: those of Google Cloud with eight NVIDIA
// GPUs, or with four on an NVLink domain.
func (m *Machine) hasUnknownFabric() bool {
	return m.Accelerator() == defaultGPUResource && slices.ContainsFunc(machinesGKE(), func(row Machine) bool {
		return row.Name == m.Name && row.Fabric == nil
	})
}

// coresEach is how many processes one of the workers' accelerators has by default. MXNet uses all of a worker's in one
// process, and where pods are processes nobody starts more.
func (j *Job) coresEach() int32 {
	s, m := &j.Spec, j.machine
	if m == nil || m.Processes == 0 || s.Resources.GPU == 0 || s.defaultProcesses() != int32(s.Resources.GPU) ||
		s.Workers.Master || s.Framework == FrameworkMXNet {
		return 1
	}
	return int32(m.Processes)
}

// machineNotes are of workers that get none of their machine's cards, and of groups with accelerators beside workers of
// a machine, whose nodes those do not get.
func (j *Job) machineNotes() (notes []string) {
	if m := j.machine; j.cardless != "" {
		notes = append(notes, fmt.Sprintf("spec.resources.machine: workers with %d of the %d accelerators of %s get "+
			"no fabric, since %s", j.Spec.Resources.GPU, m.GPU, m.Name, j.cardless))
	}
	notes = append(notes, j.cardNotes()...)
	for i := range j.Spec.Groups {
		g := &j.Spec.Groups[i]
		if j.machine != nil && g.Resources.GPU > 0 && len(g.Tolerations) == 0 && len(j.machine.Tolerations) > 0 {
			notes = append(notes, fmt.Sprintf("spec.groups[%d].resources.gpu: spec.resources.machine is the workers' "+
				"alone, and so are its nodes, taints and fabric: write nodeSelector and tolerations of this group", i))
		}
	}
	return notes
}

// cardNotes report the devices that a row of docs/machines.md adds to a worker. A node has them only if their device
// plugin runs there. A machine of the Environment, and network.fabric in so many words, describe the place.
func (j *Job) cardNotes() (notes []string) {
	m := j.machine
	if m == nil || j.asked.fabric || m.Fabric == nil || m.Fabric.Kind != j.Spec.Network.Fabric ||
		!slices.ContainsFunc(Machines(), func(row Machine) bool {
			return row.Name == m.Name && row.Fabric == m.Fabric
		}) {
		return nil
	}
	for _, name := range j.Spec.Resources.cards() {
		if _, ofMachine := m.Fabric.Devices[name]; ofMachine {
			q := j.Spec.Resources.Devices[name]
			notes = append(notes, fmt.Sprintf("spec.resources.machine: %s adds %s: %s to each worker, and the pods "+
				"stay pending on nodes without the device plugin of that resource; set network.fabric: none if yours "+
				"have none, or network.fabric: %s to confirm it", m.Name, name, q.String(), m.Fabric.Kind))
		}
	}
	return notes
}

// nearestMachine is the name that an unknown one was most likely meant to be, "" where none is near.
func nearestMachine(name string, machines []Machine) string {
	var names []string
	for _, m := range append(slices.Clone(machines), Machines()...) {
		if strings.EqualFold(m.Name, name) {
			return m.Name
		}
		names = append(names, m.Name)
	}
	return spelling.Nearest(name, names)
}
