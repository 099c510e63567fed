package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// isAccelerator knows the names under which device plugins offer what trains: of vendors' GPUs, parts of such, and of
// other chips. Network cards, such as vpc.amazonaws.com/efa, and what virtualises devices are extended resources too.
var isAccelerator = lazy.Regexp(`(?i)^[a-z0-9.-]+/(gpu|[vrx]?gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb.*|` +
	`i915|xe|tpu|v[2-6][a-z]?|npu|gaudi|hpu|mlu|dcu|ascend[0-9a-z-]*|neuron|neuroncore|neurondevice|` +
	`[a-z0-9-]+[_-]gpu|gpu[_-][a-z0-9-]+)$|^nvidia\.com/(gb|[abhlt])[0-9]+[a-z0-9_-]*$|` +
	`^deviceclass\.resource\.kubernetes\.io/.+$`)

// isShare knows the names of parts of accelerators that are not counted in pieces: memory, cores and shares of them.
var isShare = lazy.Regexp(`(?i)[-_](mem|memory|cores?|percent|percentage|ratio|milli)([-_].*)?$`)

// gpuOf is the resource name of a container's accelerators, "" for none. An amount of 0 is none, and gpuResource has
// one name: a second kind is an extended resource like any other. A vendor's own name goes before those made of it.
func gpuOf(c view) string {
	for _, list := range []string{"limits", "requests"} {
		amounts := c.at("resources", list)
		names := slices.DeleteFunc(sortedKeys(amounts.mapping()), func(name string) bool {
			return !isAccelerator().MatchString(name) || isShare().MatchString(name) || amounts.at(name).text() == "0"
		})
		if i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "/gpu") }); i >= 0 {
			return names[i]
		}
		if len(names) > 0 {
			return names[0]
		}
	}
	return ""
}

// compute reads what a container asks for and is limited to. Where it says nothing, nothing is rendered.
func (d *draft) compute(r view, field string) {
	asks := r.at("requests", "cpu").text() != "" || r.at("requests", "memory").text() != ""
	for name, key := range map[string]string{
		"cpu": "cpu", "memory": "memory",
		"ephemeralStorage": "ephemeral-storage",
	} {
		limit, request := r.at("limits", key), r.at("requests", key)
		switch {
		case limit.text() == "" && request.text() == "":
			d.set(field+"."+name, job.None, r)
		case limit.text() == "":
			d.set(field+"."+name, request.text(), request)
			d.set(field+".limits."+name, job.None, request)
		case request.text() == "" && asks: // it asks for some, and not for this
			d.set(field+"."+name, limit.text(), limit)
			d.set(field+".requests."+name, job.None, limit)
		case request.text() == "" || equalScalars(request.value, limit.value, []step{{name: "limits"}}):
			d.set(field+"."+name, limit.text(), limit)
		default:
			d.set(field+"."+name, limit.text(), limit)
			d.set(field+".requests."+name, request.text(), request)
		}
	}
}

// resources are those of the workers, with their accelerators.
func (d *draft) resources(r view) {
	const field = "spec.resources"
	d.compute(r, field)
	name := gpuOf(view{value: tree{"resources": r.value}})
	d.devices(r, name)
	if name == "" {
		return
	}
	limit, request := r.at("limits", name), r.at("requests", name)
	if request.isSet() && request.text() != limit.text() {
		d.note(request, Error,
			"an API server refuses accelerators of which the limit is not what is requested: the two are made one")
		request.markTranslated()
	}
	if !limit.isSet() {
		limit = request
	}
	if d.setNumber(field+".gpu", limit) {
		d.set(field+".gpuResource", name, limit)
	}
}
