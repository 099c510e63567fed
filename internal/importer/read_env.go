package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
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
		if slices.Contains(job.MasterVariables, name) && d.get("spec.workers.master").isTrue() {
			d.note(e, Error, "the operator sets %s behind this one, and the last one counts: this one was left out",
				name)
			e.markTranslated()
			continue
		}
		item := envItem(c, e)
		if item == nil {
			continue // podTemplate carries it
		}
		d.add("spec.env", item, e)
	}
}

// envItem is a variable in the schema's words, nil where it has none for its source.
func envItem(c, e view) tree {
	item := tree{"name": e.at("name").text()}
	switch from := e.at("valueFrom"); {
	case from.at("secretKeyRef").isSet():
		item["secret"] = keyRef(from.at("secretKeyRef"))
	case from.at("configMapKeyRef").isSet():
		item["configMap"] = keyRef(from.at("configMapKeyRef"))
	case from.at("fieldRef").isSet():
		item["field"] = from.at("fieldRef", "fieldPath").text()
	case ownAmount(c, from.at("resourceFieldRef")):
		item["resource"] = from.at("resourceFieldRef", "resource").text()
	case from.isSet():
		return nil
	default:
		item["value"] = e.at("value").text()
	}
	return item
}

// ownAmount says whether a reference is to what the container itself has of a resource, in whole units.
func ownAmount(c, ref view) bool {
	divisor, of := ref.at("divisor").text(), ref.at("containerName").text()
	whole := divisor == "" || divisor == "0" || divisor == "1"
	return ref.isSet() && whole && (of == "" || of == c.at("name").text()) &&
		!strings.Contains(ref.at("resource").text(), "hugepages")
}

// envFrom reads the sources of which every key is a variable.
func (d *draft) envFrom(c view) {
	for _, e := range c.at("envFrom").items() {
		d.add("spec.envFrom", envSource(e), e)
	}
}

func envSource(e view) tree {
	item := tree{}
	for field, key := range map[string]string{"secret": "secretRef", "configMap": "configMapRef"} {
		if ref := e.at(key); ref.isSet() {
			item[field] = ref.at("name").text()
			if ref.at("optional").isTrue() {
				item["optional"] = true
			}
		}
	}
	if p := e.at("prefix").text(); p != "" {
		item["prefix"] = p
	}
	return item
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
	if d.ofFabric(e) || d.isHostVariable(e.at("name").text()) {
		return true
	}
	switch e.at("name").text() {
	case "HOME":
		return value == "/tmp" && !d.imageSSH()
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
		if d.isPersistent(value) && d.groupsCheckpointIn(value) {
			d.set("spec.checkpoint.path", value, e)
			return true
		}
	}
	return false
}
