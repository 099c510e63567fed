package importer

import (
	"fmt"
	"slices"

	"github.com/tegen-dev/tegen/internal/quantity"
)

// step leads from a mapping or list to a value in it. An item of a list that is merged by a key has that key and value.
type step struct {
	name       string // a field, or "[0]"
	key, value string
}

// gap is a field of one object that another lacks, or has with another value.
type gap struct {
	path []step
	have any
	want any // nil where there is none
}

func (g gap) steps() []string {
	out := make([]string, len(g.path))
	for i, s := range g.path {
		out[i] = s.name
	}
	return out
}

func (g gap) String() string { return dotted(g.steps()) + ": " + summary(g.have) }

// diff finds what of have is not in want. The API's defaults are filled into want alone, so that no field is reported
// that the source does not have.
func diff(have, want any, at []step) []gap {
	here := at[:len(at):len(at)]
	switch h := have.(type) {
	case nil: // blanks tells of those that count
		return nil
	case tree:
		return diffTree(h, want, here)
	case []any:
		return diffList(h, want, here)
	}
	if equalScalars(have, want, at) {
		return nil
	}
	return []gap{{at, have, want}}
}

func diffTree(have tree, want any, at []step) (out []gap) {
	w, ok := want.(tree)
	if len(have) == 0 {
		if ok || want == nil && !emptyHasMeaning(at) {
			return nil
		}
		return []gap{{at, have, want}}
	}
	if !ok && len(at) > 0 && (want != nil || atomicFields[at[len(at)-1].name]) {
		return []gap{{at, have, want}}
	}
	for _, key := range sortedKeys(have) {
		out = append(out, diff(have[key], w[key], append(at, step{name: key}))...)
	}
	return out
}

// atomicFields are mappings that are reported as a whole.
var atomicFields = map[string]bool{
	"volume": true, "valueFrom": true, "affinity": true, "livenessProbe": true,
	"readinessProbe": true, "startupProbe": true, "lifecycle": true,
}

// emptyIsUnset are fields that say nothing where they are empty. Anywhere else an empty value says something that its
// absence does not: plugins.ssh: [] asks Volcano for ssh.
var emptyIsUnset = map[string]bool{
	"metadata": true, "labels": true, "annotations": true, "finalizers": true, "ownerReferences": true,
	"spec": true, "template": true, "resources": true, "limits": true, "requests": true,
	"securityContext": true, "nodeSelector": true, "affinity": true, "tolerations": true, "env": true,
	"envFrom": true, "command": true, "args": true, "ports": true, "volumes": true,
	"volumeMounts": true, "volumeDevices": true, "imagePullSecrets": true, "initContainers": true,
	"hostAliases": true, "schedulingGates": true, "topologySpreadConstraints": true, "strategy": true,
	"updateStrategy": true, "runPolicy": true, "policies": true, "parameters": true,
	"mountOptions": true, "value": true, "subPath": true, "namespace": true, "schedulerName": true,
	"priorityClassName": true, "nodeName": true, "hostname": true, "subdomain": true,
	"serviceAccountName": true, "serviceAccount": true, "medium": true, "imagePullPolicy": true,
	"workingDir": true, "key": true, "operator": true, "effect": true, "name": true, "image": true,
	"volumeName": true, "queue": true, "priorityClass": true,
}

// emptyHasMeaning says whether an empty value at a place says something that its absence does not. The keys of labels
// and the like are anyone's, and an item of a list is there, whatever is in it.
func emptyHasMeaning(at []step) bool {
	n := len(at)
	if n == 0 {
		return false
	}
	return n > 1 && texts[at[n-2].name] || !emptyIsUnset[at[n-1].name]
}

// amounts are the mappings and fields whose values are quantities: 1024Mi is 1Gi.
var amounts = []string{"limits", "requests", "capacity", "sizeLimit", "minResources"}

func equalScalars(have, want any, at []step) bool {
	if want == nil {
		return have == "" && !emptyHasMeaning(at)
	}
	if have == want {
		return true
	}
	if slices.ContainsFunc(at, func(s step) bool { return slices.Contains(amounts, s.name) }) {
		h, err := quantity.Parse(fmt.Sprint(have))
		w, wantErr := quantity.Parse(fmt.Sprint(want))
		return err == nil && wantErr == nil && h.Cmp(w) == 0
	}
	_, haveText := have.(string)
	_, wantText := want.(string)
	return haveText == wantText && fmt.Sprint(have) == fmt.Sprint(want) // 1 and 1.0 are one number
}

// gaps are the fields of an object that its counterpart lacks, without those whose meaning is kept in another form.
func gaps(o *object, counterpart tree) []gap {
	have, want := pair(o.Object, counterpart)
	out := diff(have, want, nil)
	for i, g := range out {
		if last := len(g.path) - 1; g.path[last].name == renamed {
			g.path[last].name = "name"
			out[i] = gap{g.path, g.path[last-1].value, g.have}
		}
	}
	return slices.DeleteFunc(out, func(g gap) bool {
		steps := g.steps()
		if len(steps) == 2 && steps[0] == "metadata" && steps[1] == "namespace" &&
			sameNamespace(fmt.Sprint(g.have), fmt.Sprint(g.want)) {
			return true
		}
		return g.want == fallbacks["spec.image"] || o.isTranslated(steps)
	})
}

// added are the fields of a counterpart that its object lacks, without defaults.
func added(o *object, counterpart tree) []gap {
	want, have := pair(counterpart, o.Object)
	return slices.DeleteFunc(diff(want, have, nil), func(g gap) bool { return g.path[len(g.path)-1].name == renamed })
}

// pair prepares two objects for diff: pods side by side, and the API's defaults in the second.
func pair(have, want tree) (tree, tree) {
	have, want = clone(have).(tree), clone(want).(tree)
	applyDefaults(want)
	dropUsualStatus(have)
	dropUsualStatus(want)
	alignPods(have, want, "")
	return have, want
}

func clone(value any) any { return rebuilt(value, func(scalar any) any { return scalar }) }

// rebuilt is a copy in which each scalar is replaced.
func rebuilt(value any, scalar func(any) any) any {
	switch x := value.(type) {
	case tree:
		out := make(tree, len(x))
		for key, v := range x {
			out[key] = rebuilt(v, scalar)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = rebuilt(v, scalar)
		}
		return out
	}
	return scalar(value)
}

func (g gap) reason() string {
	if g.want != nil {
		_, want := summaries(g.have, g.want)
		return "tegen renders " + want
	}
	return "a TrainingJob has no field for it"
}

func (g gap) note(o *object, why string) Note {
	v := view{o, realPath(o, g.steps()), g.have}
	n := v.note(Dropped, "%s", why)
	if g.want != nil && n.Value != redacted {
		n.Value, _ = summaries(g.have, g.want)
	}
	return n
}
