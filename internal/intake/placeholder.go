package intake

import (
	"regexp"
	"slices"
	"strings"
)

// unfilled is what templates leave where somebody is to put a value. $(NAME) is none: the kubelet puts a variable there.
var unfilled = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|<[A-Za-z][^<>]*>`)

// stands are words that stand for a value.
var stands = regexp.MustCompile(`^(?:PLACEHOLDER|CHANGE[_-]?ME|REPLACE[_-]?ME|YOUR[_-][A-Z0-9_-]+)(?::.*)?$`)

func placeholder(text string) bool { return unfilled.MatchString(text) || stands.MatchString(text) }

// wholly says whether a text is nothing but placeholders and what joins them.
func wholly(text string) bool {
	rest := unfilled.ReplaceAllString(text, "")
	return rest != text && strings.Trim(rest, ":/.-_@,= ") == "" || stands.MatchString(text)
}

// placeholders tells of every value of the workload that nobody has filled in, once: what the schema refuses anyway is
// told with the field that it became.
func (d *draft) placeholders() {
	for _, o := range d.workload {
		if !o.made {
			d.unfilled(o.view())
		}
	}
}

func (d *draft) unfilled(v view) {
	switch x := v.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			d.unfilled(v.at(key))
		}
	case []any:
		for _, item := range v.items() {
			d.unfilled(item)
		}
	case string:
		if !d.isUnfilled(v, x) {
			return
		}
		where := ""
		if field := d.awaits[v.key()]; field != "" {
			where = ", or into " + field + " of the job"
		}
		d.note(v, Flaw, "a placeholder that nobody has filled in: put the value in its place%s", where)
		d.waits = d.waits || wholly(x)
		if n := len(v.path); !strings.HasPrefix(v.path[n-1], "[") { // a word is compared with the others of its program
			v.moved()
		}
	}
}

// await says which field of the job waits for the placeholders of a value of the source, and whether there are any.
func (d *draft) await(field string, from view) (found bool) {
	switch x := from.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			found = d.await(field, from.at(key)) || found
		}
	case []any:
		for _, item := range from.items() {
			found = d.await(field, item) || found
		}
	case string:
		if found = d.isUnfilled(from, x); found && d.awaits[from.key()] == "" {
			d.awaits[from.key()] = field
		}
	}
	return found
}

// isUnfilled looks at where a text stands: a shell's text has variables of its own, and an annotation any text.
func (d *draft) isUnfilled(v view, text string) bool {
	n := len(v.path)
	if n == 0 || !placeholder(text) {
		return false
	}
	list := v.path[max(n-2, 0)]
	switch {
	case list == "command" || list == "args":
		return !d.readByShell(v) && (wholly(text) || wholly(text[strings.Index(text, "=")+1:]) || strings.Contains(text, "${"))
	case v.path[n-1] == "value" && slices.Contains(v.path, "env"):
		return wholly(text) || strings.Contains(text, "${")
	case slices.Contains(v.path, "annotations"):
		return wholly(text)
	}
	return true
}

// readByShell says whether a word of a container's program is the text that a shell reads.
func (d *draft) readByShell(v view) bool {
	n := len(v.path)
	c := v.object.view().walk(v.path[:n-2])
	i, ok := indexIn(v.path[n-1], 1<<20)
	if v.path[n-2] == "args" {
		i += len(c.at("command").items())
	}
	return ok && i == shellWord(append(c.at("command").texts(), c.at("args").texts()...))
}

// amount sets a field to a number of the source, or to the placeholder that stands for one.
func (d *draft) amount(field string, v view) bool {
	if n, ok := v.number(); ok {
		d.set(field, n, v)
		return true
	}
	if placeholder(v.text()) {
		d.set(field, v.text(), v)
		return true
	}
	return false
}
