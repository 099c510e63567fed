package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/internal/lazy"
)

// composed is a host name that a program puts together: a variable with the name of the pods, their number, and perhaps
// a variable with the name of their Service, as in ${NAME}-0.${SERVICE}.
var composed = lazy.Regexp(
	`\$[{(]?(\w+)[)}]?-(?:[0-9]+|\$[{(]?\w+[)}]?)(?:\.\$[{(]?(\w+)[)}]?)?`)

// recompose puts the rendered names where the workers' program puts addresses of pods together.
func (d *draft) recompose(a addresses) {
	words := slices.Concat(d.get("spec.command").texts(), d.get("spec.args").texts())
	texts := slices.Clone(words)
	for _, e := range d.get("spec.env").items() {
		texts = append(texts, e.at("value").text())
	}
	now := map[string][2]string{} // by variable, the old name and the new
	for _, text := range texts {
		for _, m := range composed().FindAllStringSubmatch(text, -1) {
			now[m[1]] = [2]string{strings.TrimSuffix(a.pod, "-"), strings.TrimSuffix(a.newPod, "-")}
			if m[2] != "" && a.service != "" && a.newService != "" {
				now[m[2]] = [2]string{a.service, a.newService}
			}
		}
	}
	for _, name := range sortedKeys(now) {
		if old, renamed := now[name][0], now[name][1]; old != renamed {
			d.renameVariable(name, old, renamed, words)
		}
	}
}

// renameVariable puts a new value in the place of a variable's old one: in env, behind its name in what a shell reads,
// or in the argument of the shell that it is set to.
func (d *draft) renameVariable(name, old, renamed string, words []string) {
	said := func(from view) {
		d.note(from, Translated, "the pods %s-0 and so on are called %s-0 and so on, or are behind a Service of that "+
			"name: %s is %s", old, renamed, name, renamed)
		from.markTranslated()
	}
	for i, e := range d.get("spec.env").items() {
		if e.at("name").text() == name && e.at("value").text() == old {
			e.mapping()["value"] = renamed
			said(d.from(fmt.Sprintf("spec.env[%d]", i)).at("value"))
		}
	}
	text := shell.TextIn(words)
	if text < 0 {
		return
	}
	argument := name
	if m := regexp.MustCompile(`\b` + name + `=["']?\$\{?([0-9]+)`).FindStringSubmatch(words[text]); m != nil {
		argument = m[1]
	}
	if n, err := strconv.Atoi(argument); err == nil && text+1+n < len(words) && words[text+1+n] == old {
		said(d.setWord(text+1+n, renamed))
	}
	set := regexp.MustCompile(`(\b` + name + `=["']?)` + regexp.QuoteMeta(old) + `(["']?(?:\s|;|$))`)
	if changed := set.ReplaceAllString(words[text], "${1}"+renamed+"${2}"); changed != words[text] {
		said(d.setWord(text, changed))
	}
}

// setWord puts another word in the place of one of the program's, and gives where that stood.
func (d *draft) setWord(i int, word string) view {
	field, n := "spec.command", len(d.get("spec.command").texts())
	if i >= n {
		field, i = "spec.args", i-n
	}
	listOf(d.get(field).value)[i] = word
	return d.from(field)
}
