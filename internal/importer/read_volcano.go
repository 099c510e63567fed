package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// vcHosts puts the names of the groups into the files and variables by which Volcano's plugins tell of tasks, whose
// names have underscores there (GenerateHosts in pkg/controllers/job/plugins/svc).
func (d *draft) vcHosts(train view, groups []view) {
	for _, task := range append(groups, train) {
		underscored := strings.NewReplacer("-", "_")
		old := underscored.Replace(task.at("name").text())
		now := underscored.Replace(d.groupOf(task.at("name").text(), train.at("name").text()))
		words := strings.NewReplacer("/etc/volcano/"+old+".host", "/etc/volcano/"+now+".host",
			"VC_"+strings.ToUpper(old)+"_HOSTS", "VC_"+strings.ToUpper(now)+"_HOSTS",
			"VC_"+strings.ToUpper(old)+"_NUM", "VC_"+strings.ToUpper(now)+"_NUM")
		if old != now {
			d.rename(words.Replace, func(from view) {
				d.note(from, Translated, "what is in /etc/volcano/%s.host is in /etc/volcano/%s.host", old, now)
				from.markTranslated()
			})
		}
	}
}

// vcPlugins reads the plugins that a job can ask for. Those that every job has are rendered whatever the source says.
func (d *draft) vcPlugins(plugins, train view, groups []view, program view) {
	for _, plugin := range job.VolcanoPluginTable {
		at := plugins.at(plugin.Name)
		if !at.isSet() {
			continue
		}
		if without := d.vcMissing(plugin, at, train, groups); without != "" {
			d.note(at, Dropped, "%s", without)
			at.suppressReport()
			if plugin.Name == "pytorch" {
				d.reportUnsetVariables(program, "the plugin pytorch")
			}
			continue
		}
		args := []any{} // none is a list too
		for _, word := range at.texts() {
			name, _ := job.VolcanoArgument(word)
			switch {
			case name == "ssh-private-key" || name == "ssh-public-key":
				d.note(at, Dropped, "a key in a manifest is known to all who read it: the controller makes a pair")
				at.suppressReport()
			case !slices.ContainsFunc(plugin.Roles, func(r job.VolcanoRole) bool { return r.Flag == name }):
				args = append(args, word)
			}
		}
		for _, role := range plugin.Roles {
			if word := d.vcRole(plugin, role, at, train, groups); word != "" {
				args = append(args, word)
			}
		}
		d.set("spec.volcano.plugins."+plugin.Name, args, at)
		if !slices.Equal(at.texts(), wordsOf(args)) {
			at.suppressReport()
			d.note(at, Translated, "the tasks that it names are groups of the job, and the workers are worker")
		}
	}
}

// vcMissing says which task a plugin is of no use without, "" where none is missing.
func (d *draft) vcMissing(plugin job.VolcanoPlugin, at, train view, groups []view) string {
	for _, role := range plugin.Roles {
		name := vcTold(at, role.Flag, role.Default)
		if role.Without != "" && !role.Container && train.at("name").text() != name &&
			!slices.ContainsFunc(groups, func(g view) bool { return g.at("name").text() == name }) {
			return fmt.Sprintf("there is no task %s, and without one %s", name, role.Without)
		}
	}
	return ""
}

// vcTold is the value that a plugin is told, or another one.
func vcTold(at view, flag, otherwise string) string {
	for _, word := range at.texts() {
		if name, value := job.VolcanoArgument(word); name == flag {
			otherwise = value
		}
	}
	return otherwise
}

// vcRole is the argument by which a plugin finds a task that it took for something, "" where it does so by itself.
func (d *draft) vcRole(
	plugin job.VolcanoPlugin, role job.VolcanoRole, at, train view, groups []view,
) string {
	task := strings.TrimSuffix(role.Flag, "Container")
	name := vcTold(at, task, task)
	i := slices.IndexFunc(groups, func(g view) bool { return g.at("name").text() == name })
	if i < 0 && train.at("name").text() != name {
		if name == job.RoleWorker && !role.Container { // which the workers are now
			d.note(at, Changed, "plugin %s took no task for its %s, and takes the workers now", plugin.Name, role.Flag)
		}
		return ""
	}
	now := d.groupOf(name, train.at("name").text())
	if plugin.Name == "ray" && !role.Container {
		d.dropProgram(now)
	}
	if role.Container {
		item := train
		if i >= 0 {
			item = groups[i]
		}
		sought := vcTold(at, role.Flag, role.Default)
		if c := trainingContainer(item.at("template", "spec")); c.at("name").text() != sought {
			d.note(at, Changed, "plugin %s looked for container %s of task %s in vain: it finds it now", plugin.Name,
				sought, name)
		}
	}
	if now == role.Default {
		return ""
	}
	return "--" + role.Flag + "=" + now
}

// dropProgram leaves out what plugin ray puts ray start into the place of.
func (d *draft) dropProgram(group string) {
	at := "spec"
	if i := d.groupIndex(group); i >= 0 {
		at = fmt.Sprintf("spec.groups[%d]", i)
	}
	for _, field := range []string{"command", "args"} {
		if d.get(at + "." + field).isSet() {
			d.note(d.from(at+"."+field), Translated, "plugin ray puts ray start into its place, in the source too")
			d.from(at + "." + field).suppressReport()
			delete(d.get(at).mapping(), field)
		}
	}
}

func wordsOf(list []any) (words []string) {
	for _, word := range list {
		words = append(words, view{value: word}.text())
	}
	return words
}

// vcFewest is how many workers train at least.
func (d *draft) vcFewest() int64 {
	n, _ := orElse(d.get("spec.workers.min"), d.get("spec.workers.replicas")).number()
	return n
}

// vcLeast is how many workers are placed together, of the job's minimum, which counts the pods of all tasks that start
// at once: any of them where it is below the sum of what the tasks say, and that is all of a task by default.
func (d *draft) vcLeast(spec, task view) int64 {
	least, ok := spec.at("minAvailable").number()
	all, _ := d.get("spec.workers.replicas").number()
	if d.get("spec.workers.after").isSet() { // which then count towards no gang
		spec.at("minAvailable").markTranslated()
		return all
	}
	if !ok {
		return all
	}
	others := d.unrenderedPods
	for _, g := range d.get("spec.groups").items() {
		if n, _ := g.at("replicas").number(); !g.at("after").isSet() {
			others += max(n, 1)
		}
	}
	share := others > 0
	if share {
		least = max(least-others, 1)
		spec.at("minAvailable").markTranslated()
	}
	without := ""
	if share {
		without = "without the pods of other tasks "
	}
	launcher, fewest := d.get("spec.launcher").text(), d.vcFewest()
	switch {
	case least < fewest && launcher != job.LauncherNone && (share || launcher == job.LauncherEntrypoint):
		d.note(spec.at("minAvailable"), Changed,
			"%s%d of %d workers are not enough for a TrainingJob that is not elastic: all are placed together", without,
			least, fewest)
		spec.at("minAvailable").markTranslated()
		return fewest
	case least < fewest && share:
		d.note(spec.at("minAvailable"), Changed, "Volcano counts any pods of the job: %d of the workers and all "+
			"others are placed together", least)
	case share && d.otherRolePods == 0:
		d.note(spec.at("minAvailable"), Translated,
			"it counts the pods of all tasks: without the others %d of the workers are left of it", least)
	}
	return least
}
