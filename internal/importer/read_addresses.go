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
		if a.shift != 0 {
			d.shifted[a.pod] = a.shift
		}
		d.recompose(a)
		dialled := regexp.MustCompile(`(^|[^A-Za-z0-9.-])` + regexp.QuoteMeta(a.pod) + `([0-9]+)(\.` +
			regexp.QuoteMeta(a.service) + `)?($|[^A-Za-z0-9-])`)
		rename := func(text string) string {
			return dialled.ReplaceAllStringFunc(text, func(found string) string {
				m := dialled.FindStringSubmatch(found)
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
		old, now := a.pod+"0", fmt.Sprintf("%s%d", a.newPod, a.shift)
		if a.service != a.newService && a.service != "" && a.newService != "" {
			old, now = old+"."+a.service, now+"."+a.newService
		}
		d.rename(rename, func(from view) {
			d.note(from, Translated, "the pods %s and so on are called %s and so on, and are dialled by these names",
				old, now)
			from.markTranslated()
		})
	}
}

// rename changes names in programs and variables, of the workers and of the groups, and tells where.
func (d *draft) rename(rename func(string) string, add func(from view)) {
	fields := []string{"spec.command", "spec.args"}
	for i := range d.get("spec.groups").items() {
		at := fmt.Sprintf("spec.groups[%d]", i)
		fields = append(fields, at+".command", at+".args")
		d.renameVariables(at+".env", rename, add)
	}
	d.renameVariables("spec.env", rename, add)
	for _, field := range fields {
		words, changed := listOf(d.get(field).value), false
		for i, word := range words {
			if text, ok := word.(string); ok && rename(text) != text {
				words[i], changed = rename(text), true
			}
		}
		if changed {
			add(d.from(field))
		}
	}
}

// renameVariables is rename for the values of variables.
func (d *draft) renameVariables(field string, rename func(string) string, add func(view)) {
	for i, e := range d.get(field).items() {
		value := e.at("value").text()
		if now := rename(value); now != value {
			e.mapping()["value"] = now
			add(d.from(fmt.Sprintf("%s[%d]", field, i)).at("value"))
		}
	}
}
