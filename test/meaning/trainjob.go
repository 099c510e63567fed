package meaning

import (
	"cmp"
	"slices"
	"strings"
)

// trainJob reads a TrainJob with its runtime: one of the stream's, or one that Trainer installs.
func trainJob(root node, all []node) *job {
	spec := root.at("spec")
	name := spec.at("runtimeRef", "name").text()
	runtime := node{}
	for _, n := range append(slices.Clone(all), documents(installedRuntimes)...) {
		if strings.HasSuffix(n.at("kind").text(), "TrainingRuntime") && n.at("metadata", "name").text() == name &&
			!runtime.isSet() {
			runtime = n
		}
	}
	j := &job{kind: "TrainJob", name: root.at("metadata", "name").text(), root: root, facts: facts{}}
	j.facts.set("kind", "TrainJob trainer.kubeflow.org", root.at("kind"))
	if !runtime.isSet() {
		j.facts.set("runtime", name, spec.at("runtimeRef"))
	}
	for _, list := range []string{"labels", "annotations"} {
		for _, key := range root.at("metadata", list).keys() {
			v := root.at("metadata", list, key)
			j.facts.set("job's "+strings.TrimSuffix(list, "s")+"/"+key, v.text(), v)
		}
	}
	j.patched(runtime, spec)
	policy, trainer := runtime.at("spec", "mlPolicy"), spec.at("trainer")
	items := runtime.at("spec", "template", "spec", "replicatedJobs").items()
	trains := slices.IndexFunc(items, func(item node) bool {
		step := item.at("template", "metadata", "labels", "trainer.kubeflow.org/trainjob-ancestor-step")
		return step.text() == "trainer"
	})
	if trains < 0 {
		trains = slices.IndexFunc(items, func(item node) bool { return item.at("name").text() == "node" })
	}
	trains = max(trains, 0)
	for i, item := range items {
		f := facts{}
		child := item.at("template", "spec")
		g := childJob(item.at("name").text(), child, f)
		g.own, g.at, g.restart = f, item, cmp.Or(g.restart, "OnFailure")
		f.rest("", child, []string{
			"template", "parallelism", "completions", "completionMode", "podFailurePolicy.rules",
		}, usual)
		if i == trains {
			g.pods = trainer.at("numNodes").number(policy.at("numNodes").number(g.pods))
			g.override(trainer)
			processes := cmp.Or(trainer.at("numProcPerNode").text(), policy.at("torch", "numProcPerNode").text(),
				"auto")
			if policy.at("torch").isSet() || !runtime.isSet() {
				g.controller = map[string]string{"nnodes": itoa(g.pods), "nproc-per-node": processes}
			}
			for _, key := range policy.keys() {
				if key != "torch" && key != "numNodes" {
					policy.at(key).leaves(func(below string, leaf node) {
						f.set(strings.TrimSuffix("policy/"+key+"."+below, "."), leaf.json(), leaf)
					})
				}
			}
		}
		g.hosts = []hostNames{hosts(j.name+"-"+g.name+"-0-", 0, j.name)}
		j.groups = append(j.groups, g)
	}
	if len(items) == 0 {
		g := &group{name: "node", pods: trainer.at("numNodes").number(1), own: facts{}, at: trainer}
		g.restart = "OnFailure"
		g.template = node{"TrainJob", "", object{"spec": object{"containers": []any{object{"name": "node"}}}}}
		g.override(trainer)
		j.groups = append(j.groups, g)
	}
	j.facts.rest("", spec, []string{
		"trainer.image", "trainer.command", "trainer.args", "trainer.env", "trainer.resourcesPerNode",
		"trainer.numNodes", "trainer.numProcPerNode", "runtimeRef", "runtimePatches",
	}, usual)
	j.facts.rest("runtime's ", runtime.at("spec"), []string{"mlPolicy", "template.spec.replicatedJobs"},
		map[string]string{
			"template.spec.network.publishNotReadyAddresses": "true",
			"template.spec.network.enableDNSHostnames":       "true",
		})
	return j
}

// override puts what a TrainJob says of its pods into the template.
func (g *group) override(trainer node) {
	for _, c := range g.template.at("spec", "containers").items() {
		m, _ := c.value.(object)
		if c.at("name").text() != "node" && len(g.template.at("spec", "containers").items()) > 1 {
			continue
		}
		for _, field := range []string{"image", "command", "args"} {
			if v := trainer.at(field); v.isSet() {
				m[field] = v.value
			}
		}
		if v := trainer.at("resourcesPerNode"); v.isSet() {
			m["resources"] = v.value
		}
		env, _ := m["env"].([]any)
		for _, e := range trainer.at("env").items() {
			env = slices.DeleteFunc(env, func(own any) bool {
				return node{value: own}.at("name").text() == e.at("name").text()
			})
			env = append(env, e.value)
		}
		if len(env) > 0 {
			m["env"] = env
		}
		return
	}
}
