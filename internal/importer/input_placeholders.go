package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// templateVariable is what templates leave where somebody is to put a value, beside what job.Placeholders finds.
// $(NAME) is none: the kubelet puts a variable there.
var templateVariable = lazy.Regexp(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|` +
	`\b__[A-Z][A-Z0-9_]*__\b`)

// standIn are words that stand for a value.
var standIn = lazy.Regexp(`^(?:PLACEHOLDER|CHANGE[_-]?ME|REPLACE[_-]?ME|YOUR[_-][A-Z0-9_-]+|` +
	`__[A-Z][A-Z0-9_]*__)(?::.*)?$`)

func placeholder(text string) bool {
	return len(placeholdersIn(text, false)) > 0 || standIn().MatchString(text)
}

// placeholdersIn are the placeholders of a text.
func placeholdersIn(text string, inProgram bool) (out []string) {
	for _, at := range job.Placeholders(text, inProgram) {
		out = append(out, text[at[0]:at[1]])
	}
	return append(out, templateVariable().FindAllString(text, -1)...)
}

// replacePlaceholders is a text with something else in the place of each placeholder.
func replacePlaceholders(text, instead string, inProgram bool) string {
	for _, found := range placeholdersIn(text, inProgram) {
		text = strings.ReplaceAll(text, found, instead)
	}
	return text
}

// onlyPlaceholders says whether a text is nothing but placeholders and what joins them.
func onlyPlaceholders(text string, inProgram bool) bool {
	rest := replacePlaceholders(text, "", inProgram)
	return rest != text && strings.Trim(rest, ":/.-_@,= ") == "" || standIn().MatchString(text)
}

// reportPlaceholders reports every value of the workload that still holds a placeholder, once. What the schema refuses
// anyway is reported with the field that it became.
func (d *draft) reportPlaceholders() {
	for _, o := range d.workload {
		if !o.synthetic {
			d.reportUnfilled(o.view())
		}
	}
}

func (d *draft) reportUnfilled(v view) {
	if noNumber(v) && !placeholder(v.text()) {
		d.reportNoNumber(v)
		return
	}
	switch x := v.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			d.reportUnfilled(v.at(key))
		}
	case []any:
		for _, item := range v.items() {
			d.reportUnfilled(item)
		}
	case string:
		if !d.isUnfilled(v, x) {
			return
		}
		d.note(v, Error, "a placeholder that nobody has filled in: put the value in its place%s", d.orIntoFields(v))
		suppressCounts(v)
		d.incomplete = d.incomplete || onlyPlaceholders(x, isProgramWord(v))
		if n := len(v.path); !strings.HasPrefix(v.path[n-1], "[") { // a word is compared with the others of its program
			v.markTranslated()
		}
	}
}

// orIntoFields names the fields of the job that wait for a value of the source.
func (d *draft) orIntoFields(v view) string {
	fields := d.waitingFields[v.key()]
	if len(fields) == 0 {
		return ""
	}
	return ", or into " + strings.Join(fields, " and ") + " of the job"
}

// recordWaiting records which field of the job waits for the placeholders of a value of the source, and says whether
// there are any. For a program of many words it does not record which word the field waits for.
func (d *draft) recordWaiting(field string, from view) (found bool) {
	switch x := from.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			found = d.recordWaiting(field, from.at(key)) || found
		}
	case []any:
		if n := len(from.path); n > 0 && (from.path[n-1] == "command" || from.path[n-1] == "args") {
			field = ""
		}
		for _, item := range from.items() {
			found = d.recordWaiting(field, item) || found
		}
	case string:
		if found = d.isUnfilled(from, x); found && field != "" && !slices.Contains(d.waitingFields[from.key()], field) {
			d.waitingFields[from.key()] = append(d.waitingFields[from.key()], field)
		}
	}
	return found
}

// isProgramWord says whether a value is a word of a program, or the value of a variable.
func isProgramWord(v view) bool {
	n := len(v.path)
	return n > 1 && (v.path[n-2] == "command" || v.path[n-2] == "args" || v.path[n-1] == "value" &&
		slices.Contains(v.path, "env"))
}

// isUnfilled says whether a text is a placeholder, which depends on its place: a shell's text has variables of its own,
// and an annotation may hold any text.
func (d *draft) isUnfilled(v view, text string) bool {
	n := len(v.path)
	if n == 0 || !placeholder(text) {
		return false
	}
	switch {
	case isProgramWord(v) && v.path[n-1] == "value":
		return onlyPlaceholders(text, true) || slices.ContainsFunc(placeholdersIn(text, true),
			func(found string) bool { return d.placeholdersElsewhere()[found] })
	case isProgramWord(v):
		return !d.readByShell(v) && (onlyPlaceholders(text, true) ||
			onlyPlaceholders(text[strings.Index(text, "=")+1:], true) || strings.Contains(text, "${"))
	case slices.Contains(v.path, "annotations"):
		return onlyPlaceholders(text, false)
	}
	return true
}

// placeholdersElsewhere are the placeholders of all values of the workload but those of variables which hold more.
func (d *draft) placeholdersElsewhere() map[string]bool {
	if d.elsewhere != nil {
		return d.elsewhere
	}
	d.elsewhere = map[string]bool{}
	var look func(v view)
	look = func(v view) {
		switch x := v.value.(type) {
		case tree:
			for key := range x {
				look(v.at(key))
			}
		case []any:
			for _, item := range v.items() {
				look(item)
			}
		case string:
			if d.isUnfilled(v, x) {
				for _, found := range placeholdersIn(x, isProgramWord(v)) {
					d.elsewhere[found] = true
				}
			}
		}
	}
	for _, o := range d.workload {
		look(o.view())
	}
	return d.elsewhere
}

// readByShell says whether a word of a container's program is the text that a shell reads.
func (d *draft) readByShell(v view) bool {
	n := len(v.path)
	c := v.object.view().walk(v.path[:n-2])
	i, ok := indexIn(v.path[n-1], 1<<20)
	if v.path[n-2] == "args" {
		i += len(c.at("command").items())
	}
	return ok && i == shell.TextIn(append(c.at("command").texts(), c.at("args").texts()...))
}
