package importer

import (
	"regexp"
	"slices"
	"strings"
)

// internalVariables are variables that tegen sets for its own use, and those that repeat another field.
var internalVariables = regexp.MustCompile(`^(OMPI_MCA_orte_keep_fqdn_hostnames|PRTE_MCA_prte_keep_fqdn_hostnames|` +
	`TEGEN_.*|TORCH_.*|PYTHONUNBUFFERED)$`)

// addedText lists in one line what a job renders beyond what was there, less what changes no behaviour.
func (d *draft) addedText(o *object, all []gap) string {
	var out []string
	restricted, torchrun := "", []string(nil)
	for _, g := range all {
		path := g.steps()
		last := g.path[len(g.path)-1]
		switch {
		case slices.Contains(path, "labels") && (reserved(last.name) || isGangKey(last.name)),
			slices.Contains(path, "requests"), strings.HasPrefix(last.name, "tegen.dev/"), last.name == "namespace":
		case strings.HasPrefix(last.value, "PET_"):
			if !d.torchSet[last.value] {
				torchrun = append(torchrun, torchVariable(g))
			}
		case internalVariables.MatchString(last.value), o.isTranslated(path), g.have == fallbacks["spec.image"]:
		case last.name == "readOnlyRootFilesystem" && g.have == false: // as it is where nobody says
		case slices.Contains(path, "securityContext"):
			if restricted == "" || last.name == "runAsUser" {
				restricted = "a restricted securityContext"
			}
			if last.name == "runAsUser" {
				restricted += ", as user " + summary(g.have)
			}
		default:
			text := strings.TrimSpace(shortPath(g.path) + " " + summary(g.have))
			if last.key == "mountPath" {
				text = last.value
			}
			if !slices.Contains(out, text) { // several roles are given the same
				out = append(out, text)
			}
		}
	}
	if torchrun = slices.DeleteFunc(torchrun, func(text string) bool { return text == "" }); len(torchrun) > 0 {
		out = append(out, "for torchrun "+strings.Join(torchrun, " "))
	}
	if restricted != "" {
		out = append(out, restricted)
	}
	return strings.Join(out, ", ")
}

// torchVariable is a variable that torchrun reads, with its value, "" where that is torchrun's own. The name of the run
// and the tuning of the rendezvous say nothing where no rendezvous was.
func torchVariable(g gap) string {
	name, value := g.path[len(g.path)-1].value, view{value: g.have}.at("value").text()
	switch name + "=" + value {
	case "PET_MAX_RESTARTS=0", "PET_NPROC_PER_NODE=1", "PET_NNODES=1:1":
		return ""
	}
	if name == "PET_RDZV_ID" || name == "PET_RDZV_CONF" {
		return ""
	}
	return name + "=" + value
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
