package environment

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// override is a field of a podTemplate that is merged over fields which stand beside the podTemplate. Kubernetes merges
// mappings and lists with names, so that only what both have is replaced, and replaces any other value.
type override struct {
	container bool   // of the container that tegen renders
	template  string // path in the pod or the container
	job       string // paths beside the podTemplate, separated by spaces
	merged    bool
}

var overrides = []override{
	{false, "nodeSelector", "placement.nodeSelector nodeSelector", true},
	{false, "tolerations", "placement.tolerations tolerations", false},
	{false, "volumes", "storage", true},
	{false, "priorityClassName", "placement.priorityClass", false},
	{false, "preemptionPolicy", "placement.preemptionPolicy", false},
	{false, "runtimeClassName", "placement.runtimeClass", false},
	{false, "schedulerName", "placement.scheduler", false},
	{false, "serviceAccountName", "identity", false},
	{false, "terminationGracePeriodSeconds", "gracePeriod", false},
	{false, "hostNetwork", "network.host", false},
	{false, "securityContext", "security", true},
	{true, "command", "command", false},
	{true, "args", "args", false},
	{true, "workingDir", "workingDir", false},
	{true, "imagePullPolicy", "imagePullPolicy", false},
	{true, "env", "env", true},
	{true, "envFrom", "envFrom", false},
	{true, "resources.limits", "resources", true},
	{true, "resources.requests", "resources resources.requests", true},
	{true, "securityContext", "security", true},
	{true, "startupProbe", "probes.startup", false},
	{true, "livenessProbe", "probes.liveness", false},
	{true, "readinessProbe", "probes.readiness", false},
}

// Overridden are notes about what an author's own file says in a field and again in a podTemplate, in a section such as
// the spec, a group or a role, and in those below it.
func Overridden(section *structural.Node, at string) (notes []string) {
	if section == nil {
		return nil
	}
	if pod := section.Below("podTemplate", "spec"); pod != nil {
		own := ownContainer(pod)
		for _, o := range overrides {
			from, path := pod, at+".podTemplate.spec"
			if o.container {
				if own < 0 {
					continue
				}
				from, path = pod.Field("containers").Items[own], fmt.Sprintf("%s.containers[%d]", path, own)
			}
			notes = append(notes, o.notes(section, from, at, path)...)
		}
		notes = append(notes, overriddenSidecars(section, pod, at)...)
	}
	for _, f := range section.Fields {
		below := at + "." + f.Key
		switch {
		case f.Key == "podTemplate":
		case f.Value.Kind == yamldoc.Map:
			notes = append(notes, Overridden(f.Value, below)...)
		case f.Key == "groups":
			for i, group := range f.Value.Items {
				notes = append(notes, Overridden(group, fmt.Sprintf("%s[%d]", below, i))...)
			}
		}
	}
	return notes
}

// overriddenSidecars are the same notes about init containers of a podTemplate that have the names of sidecars.
func overriddenSidecars(section, pod *structural.Node, at string) (notes []string) {
	for j, sidecar := range itemsOf(section.Field("sidecars")) {
		for i, c := range itemsOf(pod.Field("initContainers")) {
			own, other := sidecar.Field("name"), c.Field("name")
			if own == nil || other == nil || own.Text != other.Text {
				continue
			}
			for _, o := range overrides {
				if o.container {
					notes = append(notes, o.notes(sidecar, c, fmt.Sprintf("%s.sidecars[%d]", at, j),
						fmt.Sprintf("%s.podTemplate.spec.initContainers[%d]", at, i))...)
				}
			}
		}
	}
	return notes
}

func itemsOf(n *structural.Node) []*structural.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// notes compares a field of the pod or container from, which is at path, with those of a section.
func (o override) notes(section, from *structural.Node, at, path string) (notes []string) {
	path += "." + o.template
	now := from.Below(strings.Split(o.template, ".")...)
	for field := range strings.FieldsSeq(o.job) {
		was := section.Below(strings.Split(field, ".")...)
		switch {
		case now == nil || was == nil:
		case o.merged:
			if name := common(now, was); name != "" {
				notes = append(notes, fmt.Sprintf("%s: %s is used in place of that in %s.%s", path, name, at, field))
			}
		case now.Kind != was.Kind || now.Text != was.Text || len(now.Items)+len(was.Items) > 0:
			notes = append(notes, fmt.Sprintf("%s: is used in place of %s.%s", path, at, field))
		}
	}
	return notes
}

// ownContainer is the index of the container that tegen renders, which alone has no image in a podTemplate; below 0 if
// there is none.
func ownContainer(pod *structural.Node) int {
	for i, c := range itemsOf(pod.Field("containers")) {
		if c.Field("image") == nil {
			return i
		}
	}
	return -1
}

// common is the first name of a mapping, or list of mappings with names, that another one has too.
func common(a, b *structural.Node) string {
	has := map[string]bool{}
	for _, name := range namesOf(b) {
		has[name] = true
	}
	for _, name := range namesOf(a) {
		if has[name] {
			return name
		}
	}
	return ""
}

// namesOf are the keys of a mapping, resources by their names in a job, or the names of a list's items.
func namesOf(n *structural.Node) (names []string) {
	for _, f := range n.Fields {
		switch {
		case f.Key == "ephemeral-storage":
			names = append(names, "ephemeralStorage")
		case strings.HasSuffix(f.Key, "/gpu"):
			names = append(names, "gpu")
		default:
			names = append(names, f.Key)
		}
	}
	for _, item := range n.Items {
		if name := item.Field("name"); name != nil {
			names = append(names, name.Text)
		}
	}
	return names
}
