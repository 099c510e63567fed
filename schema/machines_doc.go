package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MachinesPage is docs/machines.md: the table of machine types.
func MachinesPage() string {
	var b strings.Builder
	b.WriteString("# Machine types\n\n" +
		"<!-- Written by 'make golden' of schema/machines_*.go, which has the sources. -->\n\n" +
		"`resources.machine` names one of these, or one of an Environment's `machines`, which replaces a row of the\n" +
		"same name. A worker with some of the accelerators has as large a share of CPU, memory and cards; shared\n" +
		"memory may be half of the memory. What follows from a machine, a job's own field replaces.\n\n" +
		"CPU and memory are what workers share: a twentieth less than a kubelet offers (AWS), a tenth less than the\n" +
		"machine has (Azure), and left to the job or the Environment where there is none. Variables of the fabric's\n" +
		"libraries are in `tegen render`; IPC_LOCK comes with those fabrics whose nodes limit locked memory, and\n" +
		"needs `security.runAsUser: 0` or `image`.\n\n" +
		"Devices that a driver of dynamic resource allocation offers need no other words. Since Kubernetes 1.36\n" +
		"(gate DRAExtendedResource) a DeviceClass may have the name of a device plugin's resource, in\n" +
		"`extendedResourceName`, and jobs stay as they are; any class is\n" +
		"`gpuResource: deviceclass.resource.kubernetes.io/<class>`. Elsewhere `resources.deviceClass` renders a\n" +
		"ResourceClaimTemplate of `gpu` devices, of which `deviceSelectors` may ask more in CEL; `resources.claims`\n" +
		"names templates that exist, such as that of a ComputeDomain's channel on GB200.\n\n" +
		"| machine | accelerators | processes each | CPU | memory | fabric | cards | IPC_LOCK |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, m := range Machines() {
		fabric, cards, lock := "", "", ""
		if f := m.Fabric; f != nil {
			fabric = f.Kind
			for _, name := range slices.Sorted(maps.Keys(f.Devices)) {
				cards += fmt.Sprintf("%d `%s`", f.Devices[name], name)
			}
			if f.LocksMemory() {
				lock = "yes"
			}
		}
		cpu, memory := "", ""
		if share := m.share(m.GPU); m.CPU != nil {
			cpu, memory = share["cpu"], share["memory"]
		}
		fmt.Fprintf(&b, "| `%s` | %d `%s` | %d | %s | %s | %s | %s | %s |\n", m.Name, m.GPU, m.Accelerator(),
			max(m.Processes, 1), cpu, memory, fabric, cards, lock)
	}
	return b.String()
}
