package apis

import (
	"fmt"
	"strings"
)

// CEL are a rule of Flux, for the spec.healthCheckExprs of a Kustomization. An object of which neither is true is in
// progress. The expressions fail where there is no status, which Flux waits for; a suspended object needs none.
func (h *Health) CEL() (current, failed string) {
	suspended := celSuspended(h)
	failed = celSays(h, h.Failed)
	running := celSays(h, append(append([]string{}, h.Done...), h.Running...))
	if h.Jobs != "" {
		const all = "%s || %s && %s.size() > 0 && %[3]s.all(j, j.ready >= j.active && j.ready + j.succeeded > 0)"
		running = fmt.Sprintf(all, celSays(h, h.Done), celHas(h.Jobs), h.Jobs)
	}
	if suspended != "" {
		running, failed = suspended+" || "+running, "!("+suspended+") && ("+failed+")"
	}
	return running, failed
}

// celSuspended is "" for a kind that cannot be suspended.
func celSuspended(h *Health) string {
	if h.Suspend != "" {
		return celHas(h.Suspend) + " && " + h.Suspend
	}
	if len(h.Suspended) > 0 {
		return celSays(h, h.Suspended)
	}
	return ""
}

// celSays is true where one of the words is said.
func celSays(h *Health, words []string) string {
	list := "['" + strings.Join(words, "', '") + "']"
	if h.Phases == nil {
		return "has(status.conditions) && status.conditions.exists(c, c.type in " + list + " && c.status == 'True')"
	}
	var parts []string
	for _, path := range h.Phases {
		parts = append(parts, fmt.Sprintf("%s && %s in %s", celHas(path), path, list))
	}
	return strings.Join(parts, " || ")
}

// celHas is true where each step of a path is there but the first, of which CEL cannot ask.
func celHas(path string) string {
	steps := strings.Split(path, ".")
	var parts []string
	for i := 2; i <= len(steps); i++ {
		parts = append(parts, "has("+strings.Join(steps[:i], ".")+")")
	}
	return strings.Join(parts, " && ")
}
