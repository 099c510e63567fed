package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// env reads the variables of the worker, but those of names that the caller has read already.
func (d *draft) env(c view, read ...string) {
	all := c.at("env").items()
	last := map[string]int{}
	for i, e := range all {
		last[e.at("name").text()] = i
	}
	for i, e := range all {
		name := e.at("name").text()
		if slices.Contains(read, name) || d.known(c, e) {
			continue
		}
		if last[name] != i {
			d.note(e, Error, "%s is set again below, and the last one counts: this one was left out", name)
			e.markTranslated()
			continue
		}
		if slices.Contains(schema.MasterVariables, name) && d.get("spec.workers.master").isTrue() {
			d.note(e, Error, "the operator sets %s behind this one, and the last one counts: this one was left out",
				name)
			e.markTranslated()
			continue
		}
		item := tree{"name": name}
		from := e.at("valueFrom")
		switch {
		case from.at("secretKeyRef").isSet():
			item["secret"] = keyRef(from.at("secretKeyRef"))
		case from.at("configMapKeyRef").isSet():
			item["configMap"] = keyRef(from.at("configMapKeyRef"))
		case from.isSet():
			continue // a field of the pod: podTemplate carries it
		default:
			item["value"] = e.at("value").text()
		}
		d.add("spec.env", item, e)
	}
}

func keyRef(v view) tree {
	ref := tree{"name": v.at("name").text(), "key": v.at("key").text()}
	if v.at("optional").isTrue() {
		ref["optional"] = true
	}
	return ref
}

// known reads variables that have a field in the schema, and skips those that every worker gets anyway.
func (d *draft) known(c, e view) bool {
	value := e.at("value").text()
	switch e.at("name").text() {
	case "HOME":
		return value == "/tmp"
	case "PYTHONUNBUFFERED":
		return value == "1"
	case "DIST_BACKEND":
		if slices.Contains([]string{"nccl", "gloo", "mpi"}, value) {
			d.set("spec.network.collective", value, e)
			return true
		}
	case "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME":
		nccl, gloo := c.at("env").item("name", "NCCL_SOCKET_IFNAME"), c.at("env").item("name", "GLOO_SOCKET_IFNAME")
		if nccl.at("value").text() == gloo.at("value").text() && !strings.ContainsAny(value, ",^=") {
			d.set("spec.network.interface", value, e)
			return true
		}
	case "CHECKPOINT_DIR":
		if d.isPersistent(value) {
			d.set("spec.checkpoint.path", value, e)
			return true
		}
	}
	return false
}
