package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

// overrides are fields of the workers' podTemplate that are merged over what another field of the job says: the fields
// of the pod, and those of the training container. Of mappings and lists with names, only what both have is replaced.
var overrides = []struct{ template, job string }{
	{"nodeSelector", "spec.placement.nodeSelector"},
	{"tolerations", "spec.placement.tolerations"},
	{"priorityClassName", "spec.placement.priorityClass"},
	{"preemptionPolicy", "spec.placement.preemptionPolicy"},
	{"runtimeClassName", "spec.placement.runtimeClass"},
	{"schedulerName", "spec.placement.scheduler"},
	{"serviceAccountName", "spec.identity"},
	{"terminationGracePeriodSeconds", "spec.gracePeriod"},
	{"container.command", "spec.command"},
	{"container.args", "spec.args"},
	{"container.env", "spec.env"},
	{"container.resources.limits", "spec.resources"},
	{"container.resources.requests", "spec.resources"},
}

// overridden are the notes about what an author's own file says in a field and again in podTemplate.
func overridden(root *structural.Node) (notes []string) {
	pod := root.Below("spec", "podTemplate", "spec")
	if pod == nil {
		return nil
	}
	const at = "spec.podTemplate.spec."
	for _, o := range overrides {
		from, field, path := pod, o.template, at+o.template
		if name, ok := strings.CutPrefix(o.template, "container."); ok {
			i := slices.IndexFunc(itemsOf(pod.Field("containers")), func(c *structural.Node) bool {
				name := c.Field("name")
				return name != nil && name.Text == RoleWorker
			})
			if i < 0 {
				continue
			}
			from, field, path = pod.Field("containers").Items[i], name, fmt.Sprintf("%scontainers[%d].%s", at, i, name)
		}
		now := from.Below(strings.Split(field, ".")...)
		was := root.Below(strings.Split(o.job, ".")...)
		if now == nil || was == nil {
			continue
		}
		switch name := common(now, was); {
		case len(now.Fields)+len(namesOf(now)) == 0: // replaced whole
			notes = append(notes, fmt.Sprintf("%s: is used in place of %s", path, o.job))
		case name != "":
			notes = append(notes, fmt.Sprintf("%s: %s is used in place of that in %s", path, name, o.job))
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

// common is the first name that two mappings, or two lists of mappings with names, have in common.
func common(a, b *structural.Node) string {
	for _, name := range namesOf(a) {
		if slices.Contains(namesOf(b), name) {
			return name
		}
	}
	return ""
}

// namesOf are the keys of a mapping, or the names of a list's items.
func namesOf(n *structural.Node) (names []string) {
	for _, f := range n.Fields {
		names = append(names, f.Key)
	}
	for _, item := range n.Items {
		if name := item.Field("name"); name != nil {
			names = append(names, name.Text)
		}
	}
	return names
}
