package diff

import (
	"encoding/json"
	"strings"
)

// lastApplied is where 'kubectl apply' keeps what it was given. It may hold the values of a Secret.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// tree is what somebody applied: mappings, and for lists the items by their keys, as managedFields have them. A leaf is
// nil.
type tree map[string]any

// isLive says whether a server printed an object with this metadata.
func isLive(meta map[string]any) bool {
	return text(meta["uid"]) != "" || text(meta["resourceVersion"]) != "" || meta["managedFields"] != nil ||
		text(meta["creationTimestamp"]) != ""
}

// applied are the fields that whoever applied an object said: of server-side apply and of client-side apply.
func applied(meta map[string]any) (all []tree) {
	for _, entry := range items(meta["managedFields"]) {
		m := mapping(entry)
		applies := text(m["operation"]) == "Apply" || text(m["manager"]) == "kubectl-client-side-apply"
		if fields := mapping(m["fieldsV1"]); applies && fields != nil {
			all = append(all, tree(fields))
		}
	}
	var last map[string]any
	annotation := text(mapping(meta["annotations"])[lastApplied])
	if annotation != "" && json.Unmarshal([]byte(annotation), &last) == nil {
		all = append(all, tree(asFields(last)))
	}
	return all
}

// asFields is a value in the form of managedFields.
func asFields(v any) map[string]any {
	out := map[string]any{}
	switch x := v.(type) {
	case map[string]any:
		for k, value := range x {
			out["f:"+k] = asFields(value)
		}
	case []any:
		name := listKey(x, x)
		for _, item := range x {
			if name == "" {
				return out // taken as one value
			}
			id, _ := json.Marshal(map[string]any{name: mapping(item)[name]})
			out["k:"+string(id)] = asFields(item)
		}
	}
	return out
}

// compared are the fields of an object as the other state is compared with. The admission plugin
// DefaultTolerationSeconds puts two tolerations on every pod, and again whenever an update lacks them.
func (o *object) compared(other *object) map[string]any {
	if !o.live || !o.is("Pod") {
		return o.fields
	}
	theirs := items(other.at("spec", "tolerations"))
	var kept []any
	for _, t := range items(o.at("spec", "tolerations")) {
		key := text(mapping(t)["key"])
		added := key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable"
		if !added || holds(theirs, []any{t}) {
			kept = append(kept, t)
		}
	}
	spec := without(mapping(o.at("spec")), "tolerations")
	spec["tolerations"] = kept
	fields := without(o.fields)
	fields["spec"] = spec
	return fields
}

// wasApplied says whether somebody applied the field at a path.
func (o *object) wasApplied(path steps) bool {
	for _, t := range o.applied {
		if t.has(path) {
			return true
		}
	}
	return false
}

func (t tree) has(path steps) bool {
	here := map[string]any(t)
	for _, step := range path {
		next, found := here["f:"+step]
		if id, isItem := strings.CutPrefix(step, "["); isItem {
			next, found = item(here, strings.TrimSuffix(id, "]"))
		}
		if !found {
			return false
		}
		here = mapping(next)
	}
	return true
}

// item is that of a list whose key has a value.
func item(fields map[string]any, id string) (any, bool) {
	for k, v := range fields {
		text, isKey := strings.CutPrefix(k, "k:")
		var key map[string]any
		if !isKey || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		for _, name := range listKeys {
			if value, ok := key[name]; ok && word(value) == id {
				return v, true
			}
		}
	}
	return nil, false
}

// warnings say what a dump keeps from view: without the names of who applied a field, one that only the dump has may be
// a default.
func (c *comparison) warnings() (all []string) {
	for i, unseen := range []string{"what NEW drops", "what NEW adds to OLD"} {
		if c.blind[i] {
			all = append(all, "the dump has no managedFields: "+unseen+" cannot be seen; take it with "+
				"--show-managed-fields")
		}
	}
	return all
}
