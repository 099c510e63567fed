package importer

import (
	"slices"
	"strings"
)

// addedText lists in one line what a job renders beyond what was there.
func (d *draft) addedText(o *object, all []gap) string {
	var out, torchrun []string
	add := func(text string) {
		if !slices.Contains(out, text) { // several roles are given the same
			out = append(out, text)
		}
	}
	limits := map[string]bool{}
	for _, g := range all {
		limits[dotted(g.steps())] = true
	}
	restricted, labels := "", false
	for _, g := range all {
		path := g.steps()
		last := g.path[len(g.path)-1]
		switch limit := strings.Replace(dotted(path), ".requests", ".limits", 1); {
		case slices.Contains(path, "labels") && reserved(last.name), strings.HasPrefix(last.name, "tegen.dev/"):
			labels = true
		case limit != dotted(path) && limits[limit]: // Kubernetes would set it itself
		case strings.HasPrefix(last.value, "PET_"):
			if !d.torchSet[last.value] {
				torchrun = append(torchrun, last.value+"="+view{value: g.have}.at("value").text())
			}
		case o.isTranslated(path), g.have == fallbacks["spec.image"]:
		case last.name == "readOnlyRootFilesystem" && g.have == false: // Kubernetes' own default
		case slices.Contains(path, "securityContext"):
			if restricted == "" || last.name == "runAsUser" {
				restricted = "a restricted securityContext"
			}
			if last.name == "runAsUser" {
				restricted += ", as user " + summary(g.have)
			}
		case last.key == "name" && len(path) > 1 && path[len(path)-2] == "env":
			value := view{value: g.have}.at("value")
			add(strings.TrimSpace(shortPath(g.path) + " " + string(line(value.value))))
		case last.key == "mountPath":
			add(last.value)
		default:
			add(strings.TrimSpace(shortPath(g.path) + " " + summary(g.have)))
		}
	}
	if len(torchrun) > 0 {
		out = append(out, "for torchrun "+strings.Join(torchrun, " "))
	}
	if restricted != "" {
		out = append(out, restricted)
	}
	if labels {
		out = append(out, "labels and annotations of tegen")
	}
	return strings.Join(out, ", ")
}

// addedObjects are the rendered objects that no object of the input is compared with.
func (d *draft) addedObjects(counterparts []tree) string {
	var out []string
	for _, object := range d.objects {
		v := view{value: object}
		kind, name := v.at("kind").text(), v.at("metadata", "name").text()
		part := slices.ContainsFunc(counterparts, func(c tree) bool {
			return view{value: c}.at("kind").text() == kind && view{value: c}.at("metadata", "name").text() == name
		})
		for _, o := range d.stream.objects {
			part = part || o.gvk.Kind == kind && o.name == name
		}
		if !part {
			out = append(out, kind+" "+name)
		}
	}
	return strings.Join(out, ", ")
}

// shortPath is a path without the way to a pod's container.
func shortPath(path []step) string {
	var out []string
	for i, s := range path {
		switch {
		case s.name == "containers" || s.name == "template" && i+1 < len(path):
			out = nil
		case i > 0 && path[i-1].name == "containers", s.name == "spec" && out == nil, s.name == "volumeMounts":
		case s.value != "":
			out = append(out, s.value)
		default:
			out = append(out, s.name)
		}
	}
	return strings.Join(out, ".")
}
