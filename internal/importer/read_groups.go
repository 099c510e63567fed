package importer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// groupName is what the schema takes for the name of a group.
var groupName = lazy.Regexp(`^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$`)

// mostGroups is the schema's own bound.
const mostGroups = 16

// groupItems are the items of a list of templates beside the one that trains that can be groups of a job. Each other
// is dropped, with a note; how many pods those have is returned too.
func (s *stream) groupItems(list view) (train view, groups []view, dropped int64) {
	items := list.items()
	if len(items) == 0 {
		return view{object: list.object}, nil, 0
	}
	train = items[trainingIndex(items)]
	for i, item := range items {
		if i == trainingIndex(items) {
			continue
		}
		name := item.at("name").text()
		if groupName().MatchString(name) && name != job.RoleWorker && len(groups) < mostGroups &&
			trainingContainer(podOf(item)).isSet() {
			groups = append(groups, item)
			continue
		}
		dropped += podsOf(item)
		s.notes = append(s.notes, item.at("name").note(Changed,
			"a group of a TrainingJob has at most 20 lower-case letters, digits and '-', and is not called worker: "+
				"these pods are not rendered"))
	}
	return train, groups, dropped
}

// group reads an item of a list of templates as a group beside the workers.
func (d *draft) group(item, template view) {
	d.groupNamed(groupNameOf(item.at("name").text()), podsOf(item), item, template)
}

// groupNamed is group with a name and a number of pods.
func (d *draft) groupNamed(name string, n int64, item, template view) {
	pod := template.at("spec")
	c := trainingContainer(pod)
	at := fmt.Sprintf("spec.groups[%d]", len(d.get("spec.groups").items()))
	g := tree{"name": name}
	if n != 1 {
		g["replicas"] = n
	}
	for _, field := range []string{"image", "workingDir"} {
		if text := c.at(field).text(); text != "" {
			g[field] = text
		}
	}
	for _, field := range []string{"command", "args"} {
		if len(c.at(field).items()) > 0 {
			g[field] = clone(c.at(field).value)
		}
	}
	var from []any
	for _, e := range c.at("envFrom").items() {
		from = append(from, envSource(e))
	}
	if from != nil {
		g["envFrom"] = from
	}
	d.add("spec.groups", g, item)
	for _, field := range []string{"image", "workingDir", "command", "args"} {
		d.origin[at+"."+field] = c.at(field)
	}
	for _, e := range c.at("env").items() {
		own, value := e.at("name").text(), e.at("value").text()
		if own == "HOME" && value == "/tmp" || own == "PYTHONUNBUFFERED" && value == "1" ||
			strings.HasPrefix(own, "TEGEN_") && strings.HasSuffix(own, "_HOST") {
			continue
		}
		if variable := envItem(c, e); variable != nil {
			d.add(at+".env", variable, e)
		}
	}
	d.compute(c.at("resources"), at+".resources")
	if gpu := gpuOf(c); gpu != "" {
		limit := orElse(c.at("resources", "limits", gpu), c.at("resources", "requests", gpu))
		d.setNumber(at+".resources.gpu", limit)
		d.set(at+".resources.gpuResource", gpu, limit)
	}
	d.nodesFor(at, pod)
	d.templates[name] = template
	d.otherRolePods += n
}

// isHostVariable says whether a variable is one by which pods find groups, which every pod of a job with groups has.
func (d *draft) isHostVariable(name string) bool {
	groups := d.get("spec.groups").items()
	return len(groups) > 0 && (name == job.HostVariable(job.RoleWorker) ||
		slices.ContainsFunc(groups, func(g view) bool { return name == job.HostVariable(g.at("name").text()) }))
}

// groupIndex is the index of a group of the draft, negative where a role is none.
func (d *draft) groupIndex(role string) int {
	return slices.IndexFunc(d.get("spec.groups").items(), func(g view) bool { return g.at("name").text() == role })
}

// templateOf is where the escape hatch of a role is.
func (d *draft) templateOf(role string) string {
	if i := d.groupIndex(role); i >= 0 {
		return fmt.Sprintf("spec.groups[%d].podTemplate", i)
	}
	return "spec.roles." + role + ".podTemplate"
}

// after reads which groups one waits for, into the workers or into a group; one that was dropped waits for nobody.
func (d *draft) after(item view, train string, waits []view, when string) {
	at := "spec.workers.after"
	if name := item.at("name").text(); name != train {
		i := d.groupIndex(groupNameOf(name))
		if i < 0 {
			return
		}
		at = fmt.Sprintf("spec.groups[%d].after", i)
	}
	for _, w := range waits {
		d.add(at, tree{"group": d.groupOf(w.text(), train), "when": when}, w)
	}
}

// groupOf is what a job calls a group of the source.
func (d *draft) groupOf(name, train string) string {
	if name == train {
		return job.RoleWorker
	}
	return groupNameOf(name)
}

// groupNameOf is what a job calls an item of the source that is a group: its name, where tegen calls nothing else so.
func groupNameOf(name string) string {
	if rule.ReservedGroup(name) {
		return name + "-0"
	}
	return name
}

// sharedVolumes are the rendered names of those volumes that the pods of a template have as the workers do: another
// volume of the same name is another one.
func (d *draft) sharedVolumes(template, worker view) map[string]string {
	shared := map[string]string{}
	for name, rendered := range d.volume {
		own := template.at("spec", "volumes").item("name", name)
		if own.isSet() && reflect.DeepEqual(own.value, worker.at("spec", "volumes").item("name", name).value) {
			shared[name] = rendered
		}
	}
	return shared
}

// groupsCheckpointIn says whether no group has checkpoints elsewhere than the workers, and takes the variable out of
// those that say the same, since spec.checkpoint sets it for all pods.
func (d *draft) groupsCheckpointIn(dir string) bool {
	const name = "CHECKPOINT_DIR"
	groups := d.get("spec.groups").items()
	for _, g := range groups {
		if own := g.at("env").item("name", name); own.isSet() && own.at("value").text() != dir {
			return false
		}
	}
	for i, g := range groups {
		env := listOf(g.at("env").value)
		n := slices.IndexFunc(env, func(e any) bool { return view{value: e}.at("name").text() == name })
		if n < 0 {
			continue
		}
		at := fmt.Sprintf("spec.groups[%d].env", i)
		for j := n; j < len(env)-1; j++ {
			d.origin[fmt.Sprintf("%s[%d]", at, j)] = d.origin[fmt.Sprintf("%s[%d]", at, j+1)]
		}
		if env = slices.Delete(slices.Clone(env), n, n+1); len(env) > 0 {
			g.mapping()["env"] = env
		} else {
			delete(g.mapping(), "env")
		}
	}
	return true
}
