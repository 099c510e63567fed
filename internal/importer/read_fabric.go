package importer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
)

// isDevice knows the names of resources that are no accelerators and that resources.devices can have: of device
// plugins, and huge pages. Names of Kubernetes' own domain are its own.
var isDevice = lazy.Regexp(`^(hugepages-[1-9][0-9]*[KMG]i|` +
	`[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?)$`)

// isNumber and isPages are the amounts of both.
var (
	isNumber = lazy.Regexp(`^[1-9][0-9]{0,3}$`)
	isPages  = lazy.Regexp(`^[1-9][0-9]*[KMG]i$`)
)

// devices reads what a worker asks for beside CPU, memory and accelerators. What it does not read stays in podTemplate.
func (d *draft) devices(r view, accelerators string) {
	found := tree{}
	for _, name := range sortedKeys(r.at("limits").mapping()) {
		limit, request := r.at("limits", name), r.at("requests", name)
		domain, _, _ := strings.Cut(name, "/")
		if name == accelerators || !isDevice().MatchString(name) || strings.HasSuffix(domain, "kubernetes.io") ||
			strings.HasPrefix(name, "requests.") || request.isSet() && request.text() != limit.text() {
			continue
		}
		text, pages := limit.text(), strings.HasPrefix(name, "hugepages-")
		n, _ := limit.number()
		switch {
		case pages && isPages().MatchString(text):
			found[name] = text
		case !pages && isNumber().MatchString(text) && n <= 4096:
			found[name] = n
		default:
			continue
		}
		d.origin["spec.resources.devices["+strconv.Quote(name)+"]"] = limit
	}
	if len(found) > 0 {
		d.set("spec.resources.devices", found, r.at("limits"))
	}
}

// fabric reads by what a worker has beside its devices which fabric it is for.
func (d *draft) fabric(c view) {
	devices := d.get("spec.resources.devices")
	cards := slices.DeleteFunc(sortedKeys(devices.mapping()), func(name string) bool {
		return strings.HasPrefix(name, "hugepages-")
	})
	if len(cards) == 0 {
		return
	}
	env := c.at("env")
	if provider := env.item("name", "FI_PROVIDER"); devices.at(job.DeviceEFA).isSet() {
		pages := env.item("name", "FI_EFA_USE_HUGE_PAGE").at("value").text() == "0"
		if provider.at("value").text() == "efa" && pages != devices.at("hugepages-2Mi").isSet() {
			d.set("spec.network.fabric", job.FabricEFA, provider)
		}
		return
	}
	rights := c.at("securityContext", "capabilities", "add")
	if !slices.Equal(rights.texts(), []string{"IPC_LOCK"}) || d.userIsNotRoot() {
		return
	}
	kind := job.FabricInfiniBand
	if env.item("name", "NCCL_IB_GID_INDEX").isSet() { // of a GID InfiniBand has one
		kind = job.FabricRoCE
	}
	d.set("spec.network.fabric", kind, rights)
}

// userIsNotRoot says whether the processes are some other user's for certain.
func (d *draft) userIsNotRoot() bool {
	n, isNumber := d.get("spec.security.runAsUser").number()
	return isNumber && n != 0
}

// ofFabric says whether a variable is one that the fabric sets anyway.
func (d *draft) ofFabric(e view) bool {
	value := map[string]string{"FI_PROVIDER": "efa", "FI_EFA_USE_HUGE_PAGE": "0"}[e.at("name").text()]
	return value != "" && d.get("spec.network.fabric").text() == job.FabricEFA && e.at("value").text() == value
}

// machine names the machine type of the nodes, where the job then renders what it did without: on its own, or with no
// fabric. What follows from it is left out afterwards like any default.
func (s *shortener) machine(j tree) {
	const label = "node.kubernetes.io/instance-type"
	valid := view{value: s.valid}.at("spec")
	name := valid.at("placement", "nodeSelector", label).text()
	resources, own := valid.at("resources").mapping(), view{value: j}.at("spec", "resources").mapping()
	known := slices.ContainsFunc(machine.All(), func(m job.Machine) bool { return m.Name == name })
	if !known || resources == nil || own == nil || !valid.at("resources", "gpu").isSet() {
		return
	}
	resources["machine"] = name
	if s.same() {
		own["machine"] = name
		return
	}
	if network := valid.at("network").mapping(); network == nil {
		view{value: s.valid}.at("spec").mapping()["network"] = tree{"fabric": job.None}
		if s.same() {
			own["machine"] = name
			view{value: j}.at("spec").mapping()["network"] = tree{"fabric": job.None}
			return
		}
		delete(view{value: s.valid}.at("spec").mapping(), "network")
	}
	delete(resources, "machine")
}
