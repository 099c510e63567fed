package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/quantity"
)

// steps lead to a field: keys of mappings, and "[x]" for the item of a list that is called x or is the x-th.
type steps []string

func (s steps) add(step string) steps { return append(s[:len(s):len(s)], step) }

func (s steps) String() string {
	var b strings.Builder
	for i, step := range s {
		switch {
		case strings.HasPrefix(step, "["):
		case strings.ContainsAny(step, "./[] "):
			step = fmt.Sprintf("[%q]", step)
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

// keys is the path up to the first item of a list, whose name is a value.
func (s steps) keys() steps {
	if i := slices.IndexFunc(s, func(step string) bool { return strings.HasPrefix(step, "[") }); i >= 0 {
		return s[:i]
	}
	return s
}

// matches says whether a path is, or leads below, a pattern such as "spec.template.spec.containers[].image": [] is any
// item, and * any key.
func (s steps) matches(pattern string) bool {
	want := strings.Split(strings.ReplaceAll(pattern, "[]", ".[]"), ".")
	if len(s) < len(want) {
		return false
	}
	for i, w := range want {
		if w != s[i] && w != "*" && (w != "[]" || !strings.HasPrefix(s[i], "[")) {
			return false
		}
	}
	return true
}

// in says whether a path matches one of several patterns.
func (s steps) in(patterns ...string) bool { return slices.ContainsFunc(patterns, s.matches) }

// field is one that differs.
type field struct {
	path     steps
	old, new any // nil where it is not there
}

// differ compares two objects and collects what differs.
type differ struct {
	old, next *object
	out       []field
}

// fieldsOf are the fields in which two objects differ. Of one that a server printed, only the fields that the other has
// count, and those that somebody applied: the rest are defaults and the writing of controllers.
func fieldsOf(old, next *object) []field {
	d := &differ{old: old, next: next}
	d.compare(nil, old.compared(next), next.compared(old))
	return d.out
}

func (d *differ) compare(path steps, a, b any) {
	a, b = present(a), present(b)
	am, aMap := a.(map[string]any)
	bm, bMap := b.(map[string]any)
	al, aList := a.([]any)
	bl, bList := b.([]any)
	switch {
	case same(path, a, b) || d.notCompared(path, a, b):
	case a == nil && d.next.isDefault(path, b) || b == nil && d.old.isDefault(path, a):
	case aMap && bMap:
		d.mappings(path, am, bm)
	case aList && bList:
		d.lists(path, al, bl)
	case aMap && b == nil && len(am) > 0:
		d.mappings(path, am, nil)
	case bMap && a == nil && len(bm) > 0:
		d.mappings(path, nil, bm)
	default:
		d.out = append(d.out, field{path, a, b})
	}
}

// notCompared says whether only a server's side has a value, and nobody applied it.
func (d *differ) notCompared(path steps, a, b any) bool {
	return a != nil && b == nil && d.old.live && !d.old.wasApplied(path) ||
		b != nil && a == nil && d.next.live && !d.next.wasApplied(path)
}

func (d *differ) mappings(path steps, a, b map[string]any) {
	keys := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		d.compare(path.add(k), a[k], b[k])
	}
}

// listKeys are the fields that tell items of lists apart, as the API's types have them. Where an item has several, the
// first counts: managedFields name a mount by its path and not by its volume.
var listKeys = []string{"mountPath", "devicePath", "containerPort", "port", "name", "ip", "topologyKey", "manager"}

func (d *differ) lists(path steps, a, b []any) {
	name := listKey(a, b)
	if name == "" {
		d.numbered(path, a, b)
		return
	}
	before, after := map[string]any{}, map[string]any{}
	var was, is []string
	for _, i := range a {
		id := word(mapping(i)[name])
		before[id], was = i, append(was, id)
	}
	for _, i := range b {
		id := word(mapping(i)[name])
		after[id], is = i, append(is, id)
	}
	for _, id := range was {
		d.item(path.add("["+id+"]"), before[id], after[id])
	}
	for _, id := range is {
		if before[id] == nil {
			d.item(path.add("["+id+"]"), nil, after[id])
		}
	}
	both := func(id string) bool { return before[id] == nil || after[id] == nil }
	if was, is := slices.DeleteFunc(was, both), slices.DeleteFunc(is, both); !slices.Equal(was, is) {
		d.out = append(d.out, field{
			path, "in the order " + strings.Join(was, ", "),
			"in the order " + strings.Join(is, ", "),
		})
	}
}

// item compares two items of a list; one that only one side has is a change in one.
func (d *differ) item(path steps, a, b any) {
	switch {
	case a != nil && b != nil:
		d.compare(path, a, b)
	case !d.notCompared(path, a, b):
		d.out = append(d.out, field{path, a, b})
	}
}

// numbered compares lists whose items have no names: one by one where there are as many, else as a whole.
func (d *differ) numbered(path steps, a, b []any) {
	if len(a) != len(b) {
		d.out = append(d.out, field{path, a, b})
		return
	}
	for i := range a {
		d.compare(path.add(fmt.Sprintf("[%d]", i)), a[i], b[i])
	}
}

// listKey is the field by which the items of two lists are told apart, "" for none.
func listKey(a, b []any) string {
	for _, name := range listKeys {
		if unique(a, name) && unique(b, name) && len(a)+len(b) > 0 {
			return name
		}
	}
	return ""
}

func unique(list []any, name string) bool {
	seen := map[string]bool{}
	for _, i := range list {
		v, ok := mapping(i)[name]
		if !ok || seen[word(v)] {
			return false
		}
		seen[word(v)] = true
	}
	return true
}

// present is nil for what a server does not store.
func present(v any) any {
	if l, ok := v.([]any); ok && len(l) == 0 {
		return nil
	}
	return v
}

// same says whether two values are one for a server: 1000m of CPU is 1.
func same(path steps, a, b any) bool {
	if reflect.DeepEqual(a, b) || isNumber(a) && isNumber(b) && canonical(a) == canonical(b) {
		return true
	}
	if a == nil || b == nil || !path.amount() {
		return false
	}
	x, err := quantity.Parse(word(a))
	if err != nil {
		return false
	}
	y, err := quantity.Parse(word(b))
	return err == nil && x.Cmp(y) == 0
}

// isNumber says whether a value is a number, of whichever type its reader makes of it.
func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// amount says whether the field is a quantity.
func (s steps) amount() bool {
	n := len(s)
	return n > 1 && slices.Contains([]string{"limits", "requests", "capacity", "resourcesPerNode", "hard"}, s[n-2]) ||
		n > 0 && s[n-1] == "sizeLimit"
}

// word is a value in one word or line.
func word(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(line)
}
