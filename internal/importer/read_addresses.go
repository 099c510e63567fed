package importer

import (
	"fmt"
	"regexp"
	"strconv"
)

// addresses are the names of a job's pods in DNS: as the source has them, a number and a Service behind, and as they
// are rendered.
type addresses struct {
	pod, service       string // before the number, and behind the dot
	newPod, newService string
	shift              int // of the numbers
}

// readdress puts the rendered names of pods where the program or its variables dial them by the names of the source.
func (d *draft) readdress(all ...addresses) {
	for _, a := range all {
		if a.pod == a.newPod && (a.service == a.newService || a.service == "") && a.shift == 0 {
			continue
		}
		old := regexp.MustCompile(`(^|[^A-Za-z0-9.-])` + regexp.QuoteMeta(a.pod) + `([0-9]+)(\.` +
			regexp.QuoteMeta(a.service) + `)?($|[^A-Za-z0-9-])`)
		rename := func(text string) string {
			return old.ReplaceAllStringFunc(text, func(found string) string {
				m := old.FindStringSubmatch(found)
				n, err := strconv.Atoi(m[2])
				if err != nil || m[3] == "" && a.service != "" && a.newService == "" {
					return found
				}
				host := fmt.Sprintf("%s%d", a.newPod, n+a.shift)
				if m[3] != "" {
					host += "." + a.newService
				}
				return m[1] + host + m[4]
			})
		}
		d.rename(rename, a)
	}
}

func (d *draft) rename(rename func(string) string, a addresses) {
	add := func(from view) {
		d.note(from, Translated, "the pods %s0 and so on are called %s%d and so on, and are dialled by these names",
			a.pod, a.newPod, a.shift)
		from.markTranslated()
	}
	for i, e := range d.get("spec.env").items() {
		if value := e.at("value").text(); rename(value) != value {
			e.mapping()["value"] = rename(value)
			add(d.origin[fmt.Sprintf("spec.env[%d]", i)].at("value"))
		}
	}
	for _, field := range []string{"spec.command", "spec.args"} {
		words, changed := listOf(d.get(field).value), false
		for i, word := range words {
			if text, ok := word.(string); ok && rename(text) != text {
				words[i], changed = rename(text), true
			}
		}
		if changed {
			add(d.origin[field])
		}
	}
}
