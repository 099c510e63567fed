package meaning

import (
	"regexp"
	"slices"
	"strings"
)

// firstFailureEnds says in one way what a Job's API says in two: with backoffLimit 0 the first failed pod ends the Job,
// and with backoffLimitPerIndex 0 and maxFailedIndexes 0 the first failed index does, which its first failed pod fails
// (kubernetes v1.36.3, pkg/controller/job/job_controller.go: exceedsBackoffLimit and MaxFailedIndexesExceeded).
func firstFailureEnds(f facts) {
	perIndex, indexes := f["backoffLimitPerIndex"], f["maxFailedIndexes"]
	if _, both := f["backoffLimit"]; !both && perIndex.Value == "0" && indexes.Value == "0" {
		delete(f, "backoffLimitPerIndex")
		delete(f, "maxFailedIndexes")
		f["backoffLimit"] = perIndex
	}
}

// ownHost is an address that a program makes of variables: a name, a number, and perhaps a Service.
var ownHost = regexp.MustCompile(`\$[{(]?\w+[)}]?-(\d+|\$[{(]?\w+[)}]?)(\.|\b)`)

// ownNames puts one name in the place of what the pods of a group are called before their number, and of their Service,
// where a program makes addresses of them: as whole words of it, or as variables.
func (g *group) ownNames(name string) {
	spec := g.template.at("spec")
	own := []string{spec.at("subdomain").text()}
	for _, h := range g.hosts {
		own = append(own, strings.TrimSuffix(h.prefix, "-"))
	}
	for _, c := range spec.at("containers").items() {
		if !ownHost.MatchString(strings.Join(append(c.at("command").texts(), c.at("args").texts()...), "\n")) {
			continue
		}
		for _, key := range []string{"command", "args"} {
			list, _ := c.at(key).value.([]any)
			for i, word := range list {
				if text, ok := word.(string); ok && text != "" && slices.Contains(own, text) {
					list[i] = name
				}
			}
		}
		for _, e := range c.at("env").items() {
			if text := e.at("value").text(); text != "" && slices.Contains(own, text) {
				e.value.(object)["value"] = name
			}
		}
	}
}
