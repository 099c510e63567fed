package meaning

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Difference is one thing that is not the same of a job before and after.
type Difference struct {
	About  string // group: what
	Before string // "" where only the second has it
	After  string // "" where only the first has it
	Kind   string // of the object of the first that says it
	Path   string // where; of the second where only that has it
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s -> %s", d.About, cmp.Or(d.Before, "(nothing)"), cmp.Or(d.After, "(nothing)"))
}

// Jobs are the workloads of a stream.
func jobs(text string) (out []*job) {
	all := documents(text)
	for i := 0; i < len(all); i++ {
		if all[i].at("kind").text() == "AppWrapper" {
			for _, c := range all[i].at("spec", "components").items() {
				held := c.at("template")
				queued(held, all[i])
				all = append(all, node{held.at("kind").text(), held.path, held.value})
			}
		}
	}
	for _, root := range all {
		component := root.at("spec", "template", "metadata", "labels", "app.kubernetes.io/component").text()
		switch {
		case component == "prefetch" || component == "keygen":
		case root.at("kind").text() == "TrainJob":
			out = append(out, trainJob(root, all))
		default:
			if j := jobOf(root); j != nil {
				out = append(out, j)
			}
		}
	}
	for _, root := range all {
		own := root.at("metadata", "labels", "tegen.dev/job").text()
		for _, j := range out {
			if root.at("kind").text() == "NetworkPolicy" && own == j.name && own != "" {
				j.facts.set("isolated", "only the job's own pods connect to them", root.at("spec"))
			}
		}
	}
	return mergePods(out)
}

// mergePods takes bare pods whose names differ by their numbers together.
func mergePods(all []*job) (out []*job) {
	first := map[string]*job{}
	for _, j := range all {
		if j.kind == "Pod" {
			if known := first[j.groups[0].name]; known != nil {
				known.groups[0].pods++
				continue
			}
			first[j.groups[0].name] = j
		}
		out = append(out, j)
	}
	return out
}

// Compare holds the manifests of a source against what was rendered in their place.
func Compare(source, rendered string) (out []Difference) {
	before, after := jobs(source), jobs(rendered)
	used := map[int]bool{}
	for _, b := range before {
		i := slices.IndexFunc(after, func(a *job) bool {
			own := a.root.at("metadata", "labels", "tegen.dev/job").text() // a rendered name may be another
			return a.kind == b.kind && (a.name == b.name || own == b.name) && !used[slices.Index(after, a)]
		})
		if i < 0 {
			i = slices.IndexFunc(after, func(a *job) bool { return a.kind == b.kind && !used[slices.Index(after, a)] })
		}
		if i < 0 {
			i = slices.IndexFunc(after, func(a *job) bool { return !used[slices.Index(after, a)] })
		}
		if i < 0 {
			out = append(out, Difference{"job " + b.name, b.kind, "", b.kind, ""})
			continue
		}
		used[i] = true
		out = append(out, compareJobs(b, after[i])...)
	}
	for i, a := range after {
		if !used[i] {
			out = append(out, Difference{"job " + a.name, "", a.kind, a.kind, ""})
		}
	}
	return out
}

func compareJobs(before, after *job) (out []Difference) {
	pairs := pair(before.groups, after.groups)
	merged := map[*group]int{}
	for b, a := range pairs {
		if a != nil {
			merged[a] += b.pods
			for _, h := range b.hosts {
				b.hosts[slices.IndexFunc(b.hosts, func(o hostNames) bool { return o.prefix == h.prefix })] = h
			}
		}
	}
	rename(before.groups, pairs, true)
	rename(after.groups, pairs, false)
	for b, a := range pairs {
		if a != nil && a.name != b.name {
			called(after, refer(a.name), refer(b.name))
		}
	}
	out = byKueue(before, after, differences("", before.facts, after.facts))
	for _, b := range before.groups {
		a := pairs[b]
		if a == nil {
			out = append(out, Difference{b.name, fmt.Sprint(b.pods, " pods"), "", b.template.kind, b.at.path})
			continue
		}
		if merged[a] != a.pods {
			out = append(out, Difference{
				b.name + ": pods", strconv.Itoa(merged[a]), strconv.Itoa(a.pods), b.template.kind,
				strings.TrimSuffix(b.template.path, ".template"),
			})
			merged[a] = a.pods // once
		}
		out = append(out, compareGroups(b, a)...)
	}
	for _, a := range after.groups {
		if merged[a] == 0 {
			out = append(out, Difference{a.name, "", fmt.Sprint(a.pods, " pods"), a.template.kind, a.at.path})
		}
	}
	return out
}

// pair finds for each group the one that has become of it, by its name or else by what is the same of both. A Master or
// a Chief may have become one more worker.
func pair(before, after []*group) map[*group]*group {
	out, taken := map[*group]*group{}, map[*group]bool{}
	for _, same := range []func(a, b *group) bool{
		func(a, b *group) bool { return a.name == b.name },
		func(a, b *group) bool { return len(before) == 1 && len(after) == 1 },
		func(a, b *group) bool { return likeness(a, b) > 2 },
	} {
		for _, b := range before {
			if out[b] != nil {
				continue
			}
			best := -1
			for _, a := range after {
				if score := likeness(b, a); !taken[a] && same(b, a) && score > best {
					best, out[b] = score, a
				}
			}
			if out[b] != nil {
				taken[out[b]] = true
			}
		}
	}
	for _, b := range before {
		if out[b] == nil && slices.Contains([]string{"master", "chief"}, b.name) {
			for _, a := range after {
				if a.name == "worker" || len(after) == 1 {
					out[b] = a
				}
			}
		}
	}
	return out
}

// likeness is how much of two groups is the same.
func likeness(a, b *group) (n int) {
	x, y := facts{}, facts{}
	a.all(x, mainOf(a, b))
	b.all(y, mainOf(b, a))
	for about, f := range x {
		if y[about].Value == f.Value {
			n++
		}
	}
	return n
}

// mainOf is the container of a group whose name the other has not, or the first.
func mainOf(g, other *group) string {
	names := map[string]bool{}
	for _, c := range other.template.at("spec", "containers").items() {
		names[c.at("name").text()] = true
	}
	all := g.template.at("spec", "containers").items()
	for _, c := range all {
		if !names[c.at("name").text()] {
			return c.at("name").text()
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[0].at("name").text()
}

// called has the facts of a job speak of a group by another name.
func called(j *job, old, now string) {
	all := []facts{j.facts}
	for _, g := range j.groups {
		all = append(all, g.own)
	}
	for _, f := range all {
		for about, fact := range f {
			fact.Value = strings.ReplaceAll(fact.Value, old, now)
			f[about] = fact
		}
	}
}

// rename puts one name in the place of those of the pods of paired groups.
func rename(groups []*group, pairs map[*group]*group, before bool) {
	for _, g := range groups {
		token, same := g.name, g
		if before {
			same = pairs[g]
		}
		for b, a := range pairs { // the first by its name of those that became one
			if a != nil && a == same && (b.name < token || !before && token == g.name) {
				token = b.name
			}
		}
		g.ownNames("@" + token)
		for _, h := range slices.Concat(g.hosts, g.words) {
			for _, other := range groups {
				other.template.value = replaced(other.template.value, h, "@"+token+"-")
			}
		}
	}
}

func replaced(value any, h hostNames, token string) any {
	switch x := value.(type) {
	case object:
		for key, child := range x {
			x[key] = replaced(child, h, token)
		}
	case []any:
		for i, child := range x {
			x[i] = replaced(child, h, token)
		}
	case string:
		return h.pattern.ReplaceAllStringFunc(x, func(found string) string {
			if h.pattern.NumSubexp() == 0 {
				return token + h.prefix
			}
			n, _ := strconv.Atoi(h.pattern.FindStringSubmatch(found)[1])
			return token + strconv.Itoa(n+h.shift)
		})
	}
	return value
}

func compareGroups(before, after *group) []Difference {
	x, y := facts{}, facts{}
	before.all(x, mainOf(before, after))
	after.all(y, mainOf(after, before))
	return differences(before.name+": ", x, y)
}

// all are the facts of a group; those of its main container have no name before them.
func (g *group) all(out facts, main string) {
	maps.Copy(out, g.own)
	delete(out, "all pods")
	podFacts(g.template, out)
	out.set("restart", cmp.Or(g.restart, "Always"), g.restartAt)
	pod := g.template.at("spec")
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range pod.at(list).items() {
			about := c.at("name").text() + "/"
			if list == "containers" && c.at("name").text() == main {
				about = ""
			}
			containerFacts(c, pod, about, out)
			g.programFacts(c, about, out)
			if list == "initContainers" {
				out.set(about+"order", i, c)
			}
		}
	}
}

// programFacts are what a container runs, with what its controller tells it.
func (g *group) programFacts(c node, about string, out facts) {
	if g.startsTorchrun && about == "" && !c.at("command").isSet() {
		c.value.(object)["command"] = []any{"torchrun"} // as the image's entrypoint
	}
	p := readProgram(c)
	at := c.at("command")
	if g.name == "worker" && g.template.kind == "MPIJob" && !at.isSet() && !c.at("args").isSet() {
		p.serves = true // by the operator
	}
	if !at.isSet() {
		at = c.at("args")
	}
	switch {
	case p.serves:
		out.set(about+"runs", "an sshd by which processes are started", at)
		if p.text != "" {
			out.set(about+"runs before it", withoutSSHD(p.text), at)
		}
	case p.launcher == "torchrun" && about == "":
		out.set("runs", p.text, at)
		g.torchFacts(p, c, out)
	case p.launcher != "":
		out.set(about+"runs", p.text, at)
		for name, value := range p.options {
			out.set(about+"launcher's "+name, value, at)
		}
		for name, value := range p.env {
			out.set(about+"handed on/"+name, value, at)
		}
		for _, option := range p.all {
			out.set(about+"launcher's option/"+option, true, at)
		}
	default:
		out.set(about+"runs", p.text, at)
	}
	if p.launcher == "torchrun" {
		for name := range out {
			if strings.HasPrefix(name, about+"env/PET_") {
				delete(out, name)
			}
		}
	} else if about == "" {
		for name, value := range g.controller { // torchrun may be started in what it runs
			if name == "rdzv-conf" {
				value = ownConf(g.controller["rdzv-backend"], value)
			}
			if value != "" && (name != "nproc-per-node" || value != "auto") {
				out.set("torchrun in it/"+name, value, g.at)
			}
		}
		for name, value := range g.env {
			if _, own := out["env/"+name]; !own {
				out.set("env/"+name, cmp.Or(value, "by the controller"), g.template)
			}
		}
	}
}

var sshdWords = regexp.MustCompile(`^(/bin/|/usr/bin/)?(ba)?sh -l?c|mkdir -p /(var/)?run/sshd|` +
	`(/usr/sbin/)?sshd( -\w+| -\w+ \d+| -f \S+)*|&&|;|\(entrypoint\)`)

// withoutSSHD is what a program does beside serving ssh.
func withoutSSHD(text string) string {
	return strings.Join(strings.Fields(sshdWords.ReplaceAllString(text, " ")), " ")
}

func differences(about string, before, after facts) (out []Difference) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b := before[name]
		if a, ok := after[name]; !ok || a.Value != b.Value {
			out = append(out, Difference{about + name, cmp.Or(b.Value, "''"), a.Value, b.Kind, b.Path})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			a := after[name]
			out = append(out, Difference{about + name, "", cmp.Or(a.Value, "''"), a.Kind, a.Path})
		}
	}
	return slices.DeleteFunc(out, func(d Difference) bool {
		return d.Before == "''" && d.After == "" || d.Before == d.After
	})
}
