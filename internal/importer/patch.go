package importer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema"
)

// patch puts into podTemplate, of the draft and of its sound copy, what the workers' pods have and the rendered ones
// have not. It returns why the escape hatch refused some of it, by the dotted path.
func (d *draft) patch(sound tree) map[string]string {
	refused := map[string]string{}
	d.patchRole(sound, "spec.podTemplate", refused)
	template, trainer := d.template, d.trainer
	for _, name := range sortedKeys(d.templates) {
		d.role, d.template, d.trainer = name, d.templates[name], trainerOf(d.templates[name].at("spec")).at("name").text()
		d.render(sound)
		d.patchRole(sound, "spec.roles."+name+".podTemplate", refused)
	}
	d.role, d.template, d.trainer = schema.RoleWorker, template, trainer
	return refused
}

// patchRole is patch for the pods of one role.
func (d *draft) patchRole(sound tree, field string, refused map[string]string) {
	i := slices.Index(d.workload, d.template.object)
	if i < 0 || d.twins()[i] == nil {
		return
	}
	o, twin := d.workload[i], d.twins()[i]
	var grafts []graft
	for _, g := range gaps(o, twin) {
		g = g.whole(o)
		path, ok := d.inTemplate(g)
		if !ok || d.isProgram(path) && hasCommand(o, twin, g.path[:len(g.path)-1]) {
			continue
		}
		grafts = append(grafts, graft{g, path})
	}
	patch := d.kubernetes(sound, field, twin, d.grafted(o, sound, field, tree{}, grafts, refused))
	waiting, _ := clone(patch).(tree)
	for _, at := range grafts {
		if key := dotted(at.steps()); refused[key] != "" && holdsPlaceholder(at.have) && d.takesFilled(o, sound, field, at) { // told as a flaw
			d.graft(waiting, o, at.gap, at.path)
			delete(refused, key)
			view{o, at.steps(), at.have}.moved()
			d.waits = true
		}
	}
	if len(waiting) > 0 {
		d.set(field, waiting, o.view())
	}
	if len(patch) > 0 {
		put(sound, strings.Split(field, "."), clone(patch))
	}
}

// kubernetes adds to a patch what Kubernetes itself does where a pod says nothing, and tegen's pods do not: they are
// given no token and no variables of Services.
func (d *draft) kubernetes(sound tree, field string, twin, patch tree) tree {
	pod := d.template.at("spec")
	other := view{value: counterpart(d.template.object.Object, twin, steps(append(slices.Clone(d.template.path), "spec")))}
	for _, name := range []string{"automountServiceAccountToken", "enableServiceLinks"} {
		if pod.at(name).given() || other.at(name).value != false || name == "automountServiceAccountToken" && d.noToken() {
			continue
		}
		trial := clone(patch).(tree)
		specOf(trial)[name] = true
		if d.refusal(sound, field, trial) == "" {
			patch = trial
		}
	}
	return patch
}

// noToken says whether the account of the pods, where the input holds it, gives no token by itself.
func (d *draft) noToken() bool {
	name := or(d.template.at("spec", "serviceAccountName").text(), or(d.template.at("spec", "serviceAccount").text(), "default"))
	account := d.stream.find("", "ServiceAccount", d.namespace(), name)
	return account != nil && account.view().at("automountServiceAccountToken").value == false
}

func steps(names []string) []step {
	out := make([]step, len(names))
	for i, name := range names {
		out[i] = step{name: name}
	}
	return out
}

// graft is a gap and its place in a pod template.
type graft struct {
	gap
	path []step
}

// grafted is a patch with all of the grafts that the escape hatch takes; why it refuses the others is noted. Most
// patches are taken whole, so that is tried first, and of what is refused the halves: a lone wrong one costs little.
func (d *draft) grafted(o *object, sound tree, field string, patch tree, grafts []graft, refused map[string]string) tree {
	if len(grafts) == 0 {
		return patch
	}
	trial := clone(patch).(tree)
	for _, at := range grafts {
		d.graft(trial, o, at.gap, at.path)
	}
	why := d.refusal(sound, field, trial)
	switch {
	case why == "":
		return trial
	case len(grafts) == 1:
		refused[dotted(grafts[0].steps())] = why
		return patch
	case len(refused) > mostRefused:
		for _, at := range grafts {
			refused[dotted(at.steps())] = why
		}
		return patch
	}
	half := len(grafts) / 2
	patch = d.grafted(o, sound, field, patch, grafts[:half], refused)
	return d.grafted(o, sound, field, patch, grafts[half:], refused)
}

// takesFilled says whether the escape hatch would take a field once its placeholders are numbers.
func (d *draft) takesFilled(o *object, sound tree, field string, at graft) bool {
	at.have = filled(at.have)
	patch := tree{}
	d.graft(patch, o, at.gap, at.path)
	return d.refusal(sound, field, patch) == ""
}

// filled is a value with a number in the place of each placeholder.
func filled(value any) any {
	return rebuilt(value, func(scalar any) any {
		if text, ok := scalar.(string); ok {
			return without(text, "1", false)
		}
		return scalar
	})
}

// mostRefused is how many fields are refused one by one; of an object with more, nobody reads the reasons.
const mostRefused = 100

// whole is the gap of the whole list where it is one of an item that is known by its place alone.
func (g gap) whole(o *object) gap {
	for i, s := range g.path {
		if s.key == "" && strings.HasPrefix(s.name, "[") {
			g.path = g.path[:i]
			g.have = o.view().walk(g.steps()).value
			return g
		}
	}
	return g
}

// inTemplate is the path of a gap within the workers' pod template; of a pod, only metadata that a template has counts.
func (d *draft) inTemplate(g gap) ([]step, bool) {
	steps, prefix := g.steps(), d.template.path
	if len(steps) <= len(prefix) || !slices.Equal(steps[:len(prefix)], prefix) {
		return nil, false
	}
	path := g.path[len(prefix):]
	if namesContainer(path) {
		return nil, false // the target's to choose
	}
	if d.mountsRendered(path, g) {
		return nil, false
	}
	isMetadata := path[0].name == "metadata" && len(path) > 1 && (path[1].name == "labels" || path[1].name == "annotations")
	if isMetadata && (reserved(path[len(path)-1].name) || isGangKey(path[len(path)-1].name)) {
		return nil, false
	}
	return path, isMetadata || path[0].name == "spec" || len(prefix) > 0
}

func namesContainer(path []step) bool {
	n := len(path)
	return n > 2 && path[n-1].name == "name" && path[n-3].name == "containers"
}

// mountsRendered says whether a gap is in the volume of a mount, and the rendered pods have this volume.
func (d *draft) mountsRendered(path []step, g gap) bool {
	i := slices.IndexFunc(path, func(s step) bool { return s.name == "volumeMounts" })
	if i < 0 || i+2 >= len(path) || path[i+2].name != "volume" {
		return false
	}
	mount := d.template.object.view().walk(g.steps()[:len(g.path)-len(path)+i+2])
	return d.volume[mount.at("name").text()] != ""
}

// isProgram says whether a path within the workers' pod template is that of the words by which training starts.
func (d *draft) isProgram(path []step) bool {
	n := len(path)
	return n > 2 && path[n-3].name == "containers" && path[n-2].value == d.trainer && (path[n-1].name == "command" || path[n-1].name == "args")
}

// hasCommand says whether the rendered container has a command. It and its arguments are one program: half of the
// input's in its place, and half of it left, would be neither.
func hasCommand(o *object, twin tree, container []step) bool {
	have, want := pair(o.Object, twin)
	return view{value: counterpart(have, want, container)}.at("command").given()
}

// refusal asks the schema whether it takes a patch.
func (d *draft) refusal(sound tree, field string, patch tree) string {
	text, err := json.Marshal(patch)
	if err != nil {
		return err.Error()
	}
	for _, m := range podpatch.Validate(text, d.role, strings.Replace(field, "podTemplate", "image", 1)) {
		return m.Msg
	}
	job := clone(sound).(tree)
	put(job, strings.Split(field, "."), patch)
	_, err = schema.Load([]schema.Source{{Name: "job", Data: ordered(job)}})
	for _, e := range mistakes(err) {
		return e.Msg
	}
	return ""
}

// graft adds the field of a gap to a patch: items of lists by their keys, a mount with its volume.
func (d *draft) graft(patch tree, o *object, g gap, path []step) {
	if i := slices.IndexFunc(path, func(s step) bool { return s.name == "volumeMounts" }); i >= 0 && i+1 < len(path) {
		d.graftMount(patch, o, g, path[:i+2])
		return
	}
	value := clone(g.have)
	if n := len(path); n > 1 && (path[n-2].name == "containers" || path[n-2].name == "initContainers") {
		value = clone(o.view().walk(g.steps()).value) // as it was written: a gap has volumes in place of their names
		pod := o.view().walk(g.steps()[:len(g.path)-2])
		for _, m := range (view{value: value}).at("volumeMounts").items() {
			d.graftVolume(specOf(patch), pod, m.mapping())
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
			at = &listAt{t, s.name, d.trainer, d.role}
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
	in      tree
	name    string
	trainer string // the name of the container that trains, in the input
	role    string // what the schema calls it
}

// itemOf finds or adds the item of a list; the container that trains is the schema's "worker".
func itemOf(l *listAt, s step, value any, whole bool) tree {
	name := s.value
	if l.name == "containers" && name == l.trainer {
		name = l.role
	}
	list := listOf(l.in[l.name])
	if item := (view{value: list}).item(s.key, name); item.given() {
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

// graftMount adds a mount as it was written, and its volume.
func (d *draft) graftMount(patch tree, o *object, g gap, path []step) {
	steps := g.steps()
	i := slices.Index(steps, "volumeMounts")
	mount, ok := clone(o.view().walk(steps[:i+2]).value).(tree)
	if !ok {
		return
	}
	spec := specOf(patch)
	d.graftVolume(spec, o.view().walk(steps[:i-2]), mount)
	into := itemOf(&listAt{spec, path[len(path)-4].name, d.trainer, d.role}, path[len(path)-3], nil, false)
	if !(view{value: into}).at("volumeMounts").item("mountPath", view{value: mount}.at("mountPath").text()).given() {
		into["volumeMounts"] = append(listOf(into["volumeMounts"]), mount)
	}
}

// graftVolume adds the volume of a mount, unless the rendered pods have it, under a name that no other has.
func (d *draft) graftVolume(spec tree, pod view, mount tree) {
	name := view{value: mount}.at("name").text()
	if known := d.volume[name]; known != "" {
		mount["name"] = known
		return
	}
	volume, ok := clone(pod.at("volumes").item("name", name).value).(tree)
	if !ok {
		return
	}
	if slices.Contains([]string{"dshm", "tmp", "tls", "script"}, name) || d.get("spec.storage").item("name", name).given() {
		name = "own-" + name
		volume["name"], mount["name"] = name, name
	}
	if !(view{value: spec}).at("volumes").item("name", name).given() {
		spec["volumes"] = append(listOf(spec["volumes"]), volume)
	}
}
