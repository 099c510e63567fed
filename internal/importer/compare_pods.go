package importer

import (
	"cmp"
	"slices"
	"strconv"
)

// alignPods walks two objects side by side to their pod specs, and makes those comparable: the container that trains
// gets one name in both, and each mount gets its volume, whose name means nothing outside of the pod.
func alignPods(have, want any, field string) {
	switch h := have.(type) {
	case tree:
		w, _ := want.(tree)
		if _, isPod := h["containers"].([]any); isPod {
			alignContainerNames(h, w)
			resolveMounts(h)
			resolveMounts(w)
			accountName(h)
			accountName(w)
			alignOperators(h, w)
			return
		}
		for key, value := range h {
			alignPods(value, w[key], key)
		}
	case []any:
		partners := partnersOf(field, h, listOf(want))
		for i, value := range h {
			alignPods(value, partners(i), "")
		}
	}
}

// renamed is the name of a training container in the other object.
const renamed = "name in the other"

// alignContainerNames gives the training container of want the name that it has in have, and notes the old one.
func alignContainerNames(have, want tree) {
	h, w := trainingContainerIn(have), trainingContainerIn(want)
	if h != nil && w != nil && h["name"] != w["name"] {
		h[renamed] = w["name"]
		w["name"] = h["name"]
	}
}

// resolveMounts puts into each mount the volume that it names, and leaves in the list the volumes without a mount.
func resolveMounts(pod tree) {
	v := view{value: pod}
	mounted := map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range v.at(list).items() {
			for _, m := range c.at("volumeMounts").items() {
				name := m.at("name").text()
				volume := v.at("volumes").item("name", name)
				if !volume.isSet() {
					continue
				}
				mounted[name] = true
				source, _ := clone(volume.value).(tree)
				delete(source, "name")
				m.mapping()["volume"] = source
				delete(m.mapping(), "name")
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(listOf(pod["volumes"])), func(item any) bool {
		return mounted[view{value: item}.at("name").text()]
	})
	if delete(pod, "volumes"); len(left) > 0 {
		pod["volumes"] = left
	}
}

// accountName leaves one of the two names of one field.
func accountName(pod tree) {
	if old, ok := pod["serviceAccount"]; ok && (pod["serviceAccountName"] == nil || pod["serviceAccountName"] == old) {
		pod["serviceAccountName"] = old
		delete(pod, "serviceAccount")
	}
}

// alignOperators spells the operator that tolerations have by default as have does: in full, or not at all.
func alignOperators(have, want tree) {
	others := view{value: want}.at("tolerations").items()
	for i, t := range (view{value: have}).at("tolerations").items() {
		if i >= len(others) || others[i].mapping() == nil ||
			cmp.Or(others[i].at("operator").text(), "Equal") != "Equal" {
			continue
		}
		switch t.at("operator").value {
		case "Equal":
			others[i].mapping()["operator"] = "Equal"
		case nil:
			delete(others[i].mapping(), "operator")
		}
	}
}

// realPath turns a path through a mount to its volume into one that the object has.
func realPath(o *object, steps []string) []string {
	i := slices.Index(steps, "volume")
	if i < 3 || steps[i-2] != "volumeMounts" {
		return steps
	}
	name := o.view().walk(steps[:i]).at("name").text()
	pod := o.view().walk(steps[:i-4])
	for j, v := range pod.at("volumes").items() {
		if v.at("name").text() == name {
			return append(append(slices.Clone(steps[:i-4]), "volumes", "["+strconv.Itoa(j)+"]"), steps[i+1:]...)
		}
	}
	return steps
}
