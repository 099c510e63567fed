package policies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// generator makes policies and values of shapes by chance.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](g generator, options ...T) T { return options[g.IntN(len(options))] }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

// file is a policy of one rule below a root.
func (g generator) file(root string, s *shape) string {
	return "import (\"list\", \"strings\")\n" + root + ": " + g.mapping(s, 5, true) + "\n"
}

// rule is a constraint on a value of a shape. Below an alternative, regular fields are not allowed.
func (g generator) rule(s *shape, depth int, regular bool) string {
	if g.chance(3) {
		return "_"
	}
	switch s.kind {
	case list:
		return g.list(s, depth)
	case free:
		return g.free(s)
	case mapping:
		if depth > 0 && g.chance(15) {
			return "(" + g.mapping(s, depth-1, false) + " | " + g.mapping(s, depth-1, false) + ")"
		}
		return g.mapping(s, depth, regular)
	}
	if g.chance(25) {
		return g.atom(s) + pick(g, " & ", " | ", " | ") + g.atom(s)
	}
	return g.atom(s)
}

func (g generator) atom(s *shape) string {
	v := strings.ReplaceAll(pick(g, s.values...), "NUMBER", "0")
	switch s.kind {
	case boolean:
		return pick(g, v, v, "bool")
	case integer:
		return pick(g, v, "!="+v, pick(g, "<", "<=", ">", ">=")+v, pick(g, "<", ">=")+"1.5", "int")
	case quantity:
		number := strings.Trim(v, `"`)
		if !strings.HasSuffix(number, "m") && g.chance(60) {
			return pick(g, "<", "<=", ">", ">=") + number
		}
		return pick(g, v, "!="+v)
	}
	word, err := strconv.Unquote(v)
	if err != nil {
		panic(err)
	}
	start := strconv.Quote(word[:min(1, len(word))])
	return pick(g, v, v, "!="+v, "string",
		"=~"+strconv.Quote("^"+word), "!~"+strconv.Quote(word+"$"), `=~"[.]com/"`,
		"strings.HasPrefix("+start+")", "strings.HasSuffix("+v+")", "strings.Contains("+start+")",
		"strings.MinRunes(1)", fmt.Sprintf("strings.MaxRunes(%d)", len(word)))
}

func (g generator) list(s *shape, depth int) string {
	items := "[..." + g.rule(s.item, depth-1, true) + "]"
	count := pick(g, "list.MaxItems(1)", "list.MaxItems(2)", "list.MinItems(1)", "list.UniqueItems()")
	return pick(g, items, items, items, count, items+" & "+count)
}

func (g generator) free(s *shape) string {
	var fields []string
	for range 1 + g.IntN(2) {
		name := strconv.Quote(pick(g, s.keys...))
		value := g.rule(s.item, 0, false)
		fields = append(fields, pick(g,
			name+"?: "+value, name+"!: "+value, name+"?: _|_", "[string]: "+value,
			"[=~"+strconv.Quote("^"+pick(g, s.keys...)[:1])+"]: "+pick(g, value, "_|_")))
	}
	text := "{" + strings.Join(fields, ", ") + "}"
	if g.chance(20) {
		return "close(" + text + ")"
	}
	return text
}

func (g generator) mapping(s *shape, depth int, regular bool) string {
	var fields []string
	seen := map[string]bool{}
	for range 1 + g.IntN(2) {
		f := s.fields[g.IntN(len(s.fields))]
		if g.chance(70) { // where most fields are
			f = s.fields[len(s.fields)-1]
		}
		if seen[f.name] {
			continue
		}
		seen[f.name] = true
		composite := f.kind == list || f.kind == free || f.kind == mapping
		if g.chance(12) {
			fields = append(fields, f.name+"?: _|_")
			continue
		}
		presence := pick(g, "?", "!")
		if composite && regular && g.chance(60) {
			presence = ""
		}
		value := g.rule(f.shape, depth-1, regular)
		if strings.Contains(value, " | ") { // its violations then have the position of the whole
			value += ` @message("m")`
		}
		fields = append(fields, f.name+presence+": "+value)
	}
	text := "{" + strings.Join(fields, ", ") + "}"
	if g.chance(3) {
		return "close(" + text + ")"
	}
	return text
}

// value is a JSON value of a shape. An optional field is there by a chance that a seed decides, so that some values
// have few fields and some have many.
func (g generator) value(s *shape, percent, number int) any {
	switch s.kind {
	case list:
		items := []any{}
		for i := range pick(g, 1, 1, 1, 2, 3) {
			items = append(items, g.value(s.item, percent, i))
		}
		return items
	case free:
		out := map[string]any{}
		for range g.IntN(3) {
			out[pick(g, s.keys...)] = g.value(s.item, percent, number)
		}
		return out
	case mapping:
		out := map[string]any{}
		for _, f := range s.fields {
			if f.always || g.chance(percent) {
				out[f.name] = g.value(f.shape, percent, number)
			}
		}
		return out
	}
	var v any
	text := strings.ReplaceAll(pick(g, s.values...), "NUMBER", strconv.Itoa(number))
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return v
}

// template is a random pod template.
func (g generator) template(restart string) map[string]any {
	t, _ := g.value(podTemplate, pick(g, 5, 15, 30), 0).(map[string]any)
	spec, _ := t["spec"].(map[string]any)
	spec["restartPolicy"] = restart
	for i, v := range spec["volumes"].([]any) { // at most one source each
		volume, _ := v.(map[string]any)
		source := pick(g, "hostPath", "emptyDir", "nfs", "persistentVolumeClaim")
		for _, name := range []string{"hostPath", "emptyDir", "nfs", "persistentVolumeClaim"} {
			if name != source {
				delete(volume, name)
			}
		}
		if len(volume) == 1 {
			volume["emptyDir"] = map[string]any{}
		}
		volume["name"] = fmt.Sprintf("v%d", i)
	}
	others, _ := spec["initContainers"].([]any)
	for i, c := range others {
		container, _ := c.(map[string]any)
		container["name"] = fmt.Sprintf("i%d", i)
	}
	if name, ok := spec["serviceAccount"]; ok && spec["serviceAccountName"] != nil && spec["serviceAccountName"] != "" {
		spec["serviceAccountName"] = name // they must be equal
	}
	return t
}

// seedOf is 1, or TEGEN_SEED.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("TEGEN_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
