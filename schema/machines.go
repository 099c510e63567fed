package schema

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
)

// machine gives the workers the nodes and the fabric of their machine. Where the place is anywhere, or takes all
// accelerators away, there is neither, nor any device.
func (c *completing) machine() {
	j, env := c.Job, c.env
	s, m := &j.Spec, j.Origin.Machine
	if env != nil && (env.Spec.Anywhere || j.Origin.Asked.GPU > 0 && s.Resources.GPU == 0) {
		s.Resources.Devices, s.Resources.Claims, s.Network.Fabric = nil, nil, job.None
		return
	}
	if m == nil || s.Resources.GPU < 1 {
		if s.Network.Fabric == "" {
			s.Network.Fabric = job.None
		}
		return
	}
	nodes := &environment.Accelerator{RuntimeClass: m.RuntimeClass, NodeSelector: m.NodeSelector}
	for _, t := range m.Tolerations {
		same := func(own job.Toleration) bool { return reflect.DeepEqual(own, t) }
		if !slices.ContainsFunc(s.Placement.Tolerations, same) {
			nodes.Tolerations = append(nodes.Tolerations, t)
		}
	}
	nodes.Apply(&s.Placement)
	if s.Network.Fabric == "" && m.Fabric != nil && s.Workers.Max > 1 {
		s.Network.Fabric = m.Fabric.Kind
		if j.Origin.Cardless = m.WithoutCards(s.Resources.GPU); j.Origin.Cardless != "" {
			s.Network.Fabric = job.None
		}
	}
	if s.Network.Fabric == "" {
		if m.Fabric == nil && s.Workers.Max > 1 && hasUnknownFabric(m) {
			j.Origin.Cardless = "no row of that machine has one here: an Environment's machines may say its networks " +
				"and libraries, and network.fabric: none that TCP will do"
		}
		s.Network.Fabric = job.None
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

// hasUnknownFabric says whether a machine without a row for its cards has some: those of Google Cloud with eight NVIDIA
// GPUs, or with four on an NVLink domain.
func hasUnknownFabric(m *job.Machine) bool {
	return m.Accelerator() == job.DefaultGPUResource &&
		slices.ContainsFunc(machine.MachinesGKE(), func(row job.Machine) bool {
			return row.Name == m.Name && row.Fabric == nil
		})
}
