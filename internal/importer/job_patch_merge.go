package importer

import (
	"slices"
	"strings"
)

// addition is a gap and its place in a pod template.
type addition struct {
	gap
	path []step
}

// mergeAll is a patch with all of the additions that the escape hatch takes; why it refuses the others is noted. Most
// patches are taken whole, so that is tried first, and of what is refused the halves: a lone wrong one costs little.
func (d *draft) mergeAll(o *object, valid tree, field string, patch tree, additions []addition,
	refused map[string]string,
) tree {
	if len(additions) == 0 {
		return patch
	}
	trial := clone(patch).(tree)
	for _, at := range additions {
		d.mergeField(trial, o, at.gap, at.path)
	}
	why := d.refusal(valid, field, trial)
	switch {
	case why == "":
		return trial
	case len(additions) == 1:
		path := additions[0].path
		if at, rest, ok := strings.Cut(why, ": "); ok && strings.HasSuffix("."+at, "."+path[len(path)-1].name) {
			why = rest // of the field itself, and not of one below it
		}
		refused[dotted(additions[0].steps())] = why
		return patch
	case len(refused) > mostRefused:
		for _, at := range additions {
			refused[dotted(at.steps())] = why
		}
		return patch
	}
	half := len(additions) / 2
	patch = d.mergeAll(o, valid, field, patch, additions[:half], refused)
	return d.mergeAll(o, valid, field, patch, additions[half:], refused)
}

// mostRefused is how many fields are tried one by one; with more, the reasons are not listed.
const mostRefused = 100

// mergeField adds the field of a gap to a patch: items of lists by their keys, a mount with its volume.
func (d *draft) mergeField(patch tree, o *object, g gap, path []step) {
	if i := slices.IndexFunc(path, func(s step) bool { return s.name == "volumeMounts" }); i >= 0 && i+1 < len(path) {
		d.mergeMount(patch, o, g, path[:i+2])
		return
	}
	value := clone(g.have)
	if n := len(path); n > 1 && (path[n-2].name == "containers" || path[n-2].name == "initContainers") {
		value = clone(o.view().walk(g.steps()).value) // as it was written: a gap has volumes in place of their names
		pod := o.view().walk(g.steps()[:len(g.path)-2])
		for _, m := range (view{value: value}).at("volumeMounts").items() {
			d.mergeVolume(specOf(patch), pod, m.mapping())
		}
	}
	var at any = patch
	for i, s := range path {
		last := i == len(path)-1
		if s.key != "" {
			at = itemOf(at.(*listAt), s, value, last)
			continue
		}
		t := at.(tree)
		switch {
		case last:
			t[s.name] = value
		case path[i+1].key != "":
			at = &listAt{t, s.name, d.container, d.role}
		default:
			below, ok := t[s.name].(tree)
			if !ok {
				below = tree{}
				t[s.name] = below
			}
			at = below
		}
	}
}

func specOf(patch tree) tree {
	spec, ok := patch["spec"].(tree)
	if !ok {
		spec = tree{}
		patch["spec"] = spec
	}
	return spec
}

// listAt is a list in a mapping, which grows.
type listAt struct {
	in        tree
	name      string
	container string // the name of the container that trains, in the input
	role      string // what the schema calls it
}

// itemOf finds or adds the item of a list; the container that trains is the schema's "worker".
func itemOf(l *listAt, s step, value any, whole bool) tree {
	name := s.value
	if l.name == "containers" && name == l.container {
		name = l.role
	}
	list := listOf(l.in[l.name])
	if item := (view{value: list}).item(s.key, name); item.isSet() {
		return item.mapping()
	}
	item := tree{s.key: name}
	if m, ok := value.(tree); ok && whole {
		item = m
		if _, isText := m[s.key].(string); isText { // a port is none
			item[s.key] = name
		}
	}
	l.in[l.name] = append(list, item)
	return item
}

// mergeMount adds a mount as it was written, and its volume.
func (d *draft) mergeMount(patch tree, o *object, g gap, path []step) {
	steps := g.steps()
	i := slices.Index(steps, "volumeMounts")
	mount, ok := clone(o.view().walk(steps[:i+2]).value).(tree)
	if !ok {
		return
	}
	spec := specOf(patch)
	d.mergeVolume(spec, o.view().walk(steps[:i-2]), mount)
	into := itemOf(&listAt{spec, path[len(path)-4].name, d.container, d.role}, path[len(path)-3], nil, false)
	if !(view{value: into}).at("volumeMounts").item("mountPath", view{value: mount}.at("mountPath").text()).isSet() {
		into["volumeMounts"] = append(listOf(into["volumeMounts"]), mount)
	}
}

// mergeVolume adds the volume of a mount, unless the rendered pods have it, under a name that no other has.
func (d *draft) mergeVolume(spec tree, pod view, mount tree) {
	name := view{value: mount}.at("name").text()
	if known := d.volume[name]; known != "" {
		mount["name"] = known
		return
	}
	volume, ok := clone(pod.at("volumes").item("name", name).value).(tree)
	if !ok {
		return
	}
	if slices.Contains([]string{"dshm", "tmp", "tls", "script"}, name) ||
		d.get("spec.storage").item("name", name).isSet() {
		name = "own-" + name
		volume["name"], mount["name"] = name, name
	}
	if !(view{value: spec}).at("volumes").item("name", name).isSet() {
		spec["volumes"] = append(listOf(spec["volumes"]), volume)
	}
}
