package importer

import (
	"fmt"
	"slices"
	"strconv"
)

// mergeKeys identify the items of lists, as in strategic merging. Any other list is one value.
var mergeKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"},
	"imagePullSecrets": {"name"}, "volumeMounts": {"mountPath"}, "ports": {"containerPort", "port"},
	"replicatedJobs": {"name"}, "tasks": {"name"}, "replicaSpecs": {"mxReplicaType"},
}

func diffList(have []any, want any, at []step) (out []gap) {
	w, ok := want.([]any)
	if len(have) == 0 && len(w) == 0 {
		if ok || !emptyHasMeaning(at) {
			return nil
		}
		return []gap{{at, have, want}}
	}
	field := ""
	if len(at) > 0 {
		field = at[len(at)-1].name
	}
	keys := mergeKeys[field]
	if keys == nil || len(have) == 0 || ambiguous(have, keys) {
		return diffPlaces(have, w, want, at)
	}
	partners := partnersOf(field, have, w)
	for i, item := range have {
		key, value := mergeKey(item, keys)
		other := partners(i)
		here := append(at[:len(at):len(at)], step{"[" + strconv.Itoa(i) + "]", key, value})
		switch {
		case other == nil && podTemplateLists[field]:
			out = append(out, leaves(item, here)...)
			continue
		case other == nil:
			out = append(out, gap{here, item, nil})
			continue
		}
		out = append(out, diff(item, other, here)...)
	}
	return out
}

// podTemplateLists are lists of templates of pods.
var podTemplateLists = map[string]bool{"replicatedJobs": true, "tasks": true}

// namesItem says whether a path is to the name of a template of pods in such a list.
func namesItem(path []step) bool {
	n := len(path)
	return n > 2 && path[n-1].name == "name" && podTemplateLists[path[n-3].name]
}

// leaves are all values below one, each a gap: of a template that nothing renders, every field is worth a line.
func leaves(value any, at []step) (out []gap) {
	switch x := value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			out = append(out, leaves(x[key], append(at[:len(at):len(at)], step{name: key}))...)
		}
	case []any:
		if !slices.ContainsFunc(x, isTree) {
			return []gap{{at, value, nil}}
		}
		for i, item := range x {
			out = append(out, leaves(item, append(at[:len(at):len(at)], step{name: "[" + strconv.Itoa(i) + "]"}))...)
		}
	default:
		return []gap{{at, value, nil}}
	}
	return out
}

// partner is the item of another list that an item is compared with, nil for none. The template of the workers is
// compared with the one that trains, whatever its name.
func partner(field string, have, want []any, i int) any { return partnersOf(field, have, want)(i) }

// partnersOf is partner for all items of a list, each of which it looks at once.
func partnersOf(field string, have, want []any) func(int) any {
	keys := mergeKeys[field]
	if keys == nil {
		return func(i int) any {
			if i < len(want) {
				return want[i]
			}
			return nil
		}
	}
	one, other := -1, any(nil)
	if podTemplateLists[field] && len(have) > 0 && len(want) > 0 { // what trains has the name of its role
		one = trainingIndex(view{value: have}.items())
		other = want[trainingIndex(view{value: want}.items())]
	}
	known := map[string]any{}
	for _, item := range want {
		if _, value := mergeKey(item, keys); value != "" && known[value] == nil {
			known[value] = item
			if other := groupNameOf(value); podTemplateLists[field] && known[other] == nil {
				known[other] = item
			}
		}
	}
	return func(i int) any {
		if i == one {
			return other
		}
		_, value := mergeKey(have[i], keys)
		if item := known[value]; item != nil || !podTemplateLists[field] {
			return item
		}
		return known[groupNameOf(value)]
	}
}

// counterpartAt is what the value at a path of have is compared with.
func counterpartAt(have, want any, path []step) any {
	field := ""
	for _, s := range path {
		switch h := have.(type) {
		case tree:
			w, _ := want.(tree)
			have, want = h[s.name], w[s.name]
		case []any:
			i, ok := indexIn(s.name, len(h))
			if !ok {
				return nil
			}
			have, want = h[i], partner(field, h, listOf(want), i)
		}
		field = s.name
	}
	return want
}

// ambiguous says whether two items of a list have one key, such as the port of two protocols.
func ambiguous(list []any, keys []string) bool {
	seen := map[string]bool{}
	for _, item := range list {
		_, value := mergeKey(item, keys)
		if seen[value] {
			return true
		}
		seen[value] = true
	}
	return false
}

func mergeKey(item any, keys []string) (key, value string) {
	m, _ := item.(tree)
	for _, key := range keys {
		if m[key] != nil {
			return key, fmt.Sprint(m[key])
		}
	}
	return "", ""
}

// diffPlaces compares a list of which each item has its place: where the number of items differs, or one has more than
// its own, all of it differs.
func diffPlaces(have, w []any, want any, at []step) (out []gap) {
	if len(have) != len(w) {
		return []gap{{at, have, want}}
	}
	for i := range have {
		here := append(at[:len(at):len(at)], step{name: "[" + strconv.Itoa(i) + "]"})
		below := diff(have[i], w[i], here)
		if len(below) == 0 && len(diff(w[i], have[i], here)) > 0 {
			return []gap{{at, have, want}}
		}
		out = append(out, below...)
	}
	return out
}
