package importer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// patch puts into podTemplate, of the draft and of its valid subset, what the workers' pods have and the rendered ones
// have not. It returns why the escape hatch refused some of it, by the dotted path.
func (d *draft) patch(valid tree) map[string]string {
	refused := map[string]string{}
	d.patchRole(valid, "spec.podTemplate", refused)
	template, trainer, volume := d.template, d.container, d.volume
	for _, name := range sortedKeys(d.templates) {
		d.role, d.template, d.container = name, d.templates[name],
			trainingContainer(d.templates[name].at("spec")).at("name").text()
		d.volume = volume
		d.volume = d.sharedVolumes(d.template, template)
		if d.imageSSH() { // its launcher has none of the workers'
			d.volume = nil
		}
		d.render(valid)
		d.patchRole(valid, d.templateOf(name), refused)
	}
	d.role, d.template, d.container, d.volume = job.RoleWorker, template, trainer, volume
	return refused
}

// patchRole is patch for the pods of one role.
func (d *draft) patchRole(valid tree, field string, refused map[string]string) {
	i := slices.Index(d.workload, d.template.object)
	if i < 0 || d.counterparts()[i] == nil {
		return
	}
	o, counterpart := d.workload[i], d.counterparts()[i]
	var additions []addition
	for _, g := range gaps(o, counterpart) {
		g = g.wholeList(o, len(d.template.path))
		path, ok := d.inTemplate(g)
		if !ok || d.isProgram(path) && hasCommand(o, counterpart, g.path[:len(g.path)-1]) {
			continue
		}
		additions = append(additions, addition{g, path})
	}
	patch := d.kubernetes(valid, field, counterpart, d.mergeAll(o, valid, field, tree{}, additions, refused))
	waiting, _ := clone(patch).(tree)
	for _, at := range additions {
		// reported as an error
		if key := dotted(at.steps()); refused[key] != "" && holdsPlaceholder(at.have) &&
			d.takesFilled(o, valid, field, at) {
			d.mergeField(waiting, o, at.gap, at.path)
			delete(refused, key)
			view{o, at.steps(), at.have}.markTranslated()
			d.incomplete = true
		}
	}
	if len(waiting) > 0 {
		d.set(field, waiting, o.view())
	}
	if len(patch) > 0 {
		put(valid, fieldSteps(field), clone(patch))
	}
}

// kubernetes adds to a patch what Kubernetes itself does where a pod says nothing, and tegen's pods do not: they are
// given no token and no variables of Services.
func (d *draft) kubernetes(valid tree, field string, counterpart, patch tree) tree {
	pod := d.template.at("spec")
	other := view{value: counterpartAt(d.template.object.Object, counterpart,
		steps(append(slices.Clone(d.template.path), "spec")))}
	for _, name := range []string{"automountServiceAccountToken", "enableServiceLinks"} {
		if pod.at(name).isSet() || other.at(name).value != false || name == "automountServiceAccountToken" &&
			d.noToken() {
			continue
		}
		trial := clone(patch).(tree)
		specOf(trial)[name] = true
		if d.refusal(valid, field, trial) == "" {
			patch = trial
		}
	}
	return d.unlikeWorkers(valid, field, pod, other, patch)
}

// unlikeWorkers adds to the patch of a group what its pods do not have and the workers do, from whom groups have it
// otherwise: their account and the host's network.
func (d *draft) unlikeWorkers(valid tree, field string, pod, rendered view, patch tree) tree {
	if d.role == job.RoleWorker {
		return patch
	}
	trial := clone(patch).(tree)
	account := cmp.Or(pod.at("serviceAccountName").text(), pod.at("serviceAccount").text())
	if other := rendered.at("serviceAccountName").text(); account == "" && other != "" && other != "default" {
		specOf(trial)["serviceAccountName"] = "default"
	}
	for name, usual := range map[string]any{
		"hostNetwork": false, "hostPID": false, "hostIPC": false, "dnsPolicy": "ClusterFirst",
	} {
		if other := rendered.at(name); !pod.at(name).isSet() && other.isSet() && other.value != usual {
			specOf(trial)[name] = usual
		}
	}
	if d.refusal(valid, field, trial) != "" {
		return patch
	}
	return trial
}

// noToken says whether the account of the pods, where the input holds it, gives no token by itself.
func (d *draft) noToken() bool {
	name := cmp.Or(d.template.at("spec", "serviceAccountName").text(), d.template.at("spec", "serviceAccount").text(),
		"default")
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

// takesFilled says whether the escape hatch would take a field once its placeholders are numbers.
func (d *draft) takesFilled(o *object, valid tree, field string, at addition) bool {
	at.have = filled(at.have)
	patch := tree{}
	d.mergeField(patch, o, at.gap, at.path)
	return d.refusal(valid, field, patch) == ""
}

// filled is a value with a number in the place of each placeholder.
func filled(value any) any {
	return rebuilt(value, func(scalar any) any {
		if text, ok := scalar.(string); ok {
			return replacePlaceholders(text, "1", false)
		}
		return scalar
	})
}

// wholeList is the gap of the whole list where it is one of an item of the pod template that is known by its place
// alone. Above the template, such an item is a role without a name.
func (g gap) wholeList(o *object, template int) gap {
	for i, s := range g.path {
		if i >= template && s.key == "" && strings.HasPrefix(s.name, "[") {
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
	isMetadata := path[0].name == "metadata" && len(path) > 1 &&
		(path[1].name == "labels" || path[1].name == "annotations")
	if isMetadata {
		key := path[len(path)-1].name
		ofLauncher := d.role == job.RoleLauncher && strings.HasPrefix(key, kueue+"podset-")
		if reserved(key) || isGangKey(key) && !ofLauncher {
			return nil, false
		}
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
	return n > 2 && path[n-3].name == "containers" && path[n-2].value == d.container &&
		(path[n-1].name == "command" || path[n-1].name == "args")
}

// hasCommand says whether the rendered container has a command. It and its arguments are one program: half of the
// input's in its place, and half of it left, would be neither.
func hasCommand(o *object, counterpart tree, container []step) bool {
	have, want := pair(o.Object, counterpart)
	return view{value: counterpartAt(have, want, container)}.at("command").isSet()
}

// refusal asks the schema whether it takes a patch.
func (d *draft) refusal(valid tree, field string, patch tree) string {
	text, err := json.Marshal(patch)
	if err != nil {
		return err.Error()
	}
	var sidecars []string
	for _, s := range d.get("spec.sidecars").items() {
		sidecars = append(sidecars, s.at("name").text())
	}
	image := strings.Replace(field, "podTemplate", "image", 1)
	for _, m := range podpatch.Validate(text, d.role, image, sidecars...) {
		return strings.TrimPrefix(m.Path+": "+m.Msg, ": ")
	}
	job := clone(valid).(tree)
	put(job, fieldSteps(field), patch)
	_, err = schema.Load([]schema.Source{{Name: "job", Data: ordered(job)}})
	for _, e := range schemaErrors(err) {
		return e.Msg
	}
	return ""
}
