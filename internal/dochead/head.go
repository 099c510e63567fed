// Package dochead decides from the head of a document (its top-level keys, apiVersion and kind) what the document is to
// tegen: an input, an object of somebody else, or neither.
package dochead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// Class is what a document is to tegen.
type Class int

// The classes of documents.
const (
	Foreign Class = iota // an object of another API, which passes through
	Input                // a TrainingJob or an Environment, of any version: the schema checks the rest
	Config               // a Generator or a Check, which configures the KRM function
	Broken               // neither, as Problem reports
)

// Head is the head of a document. Keys are the top-level keys, and Spec those of its spec, if they are known;
// apiVersion and kind are "" if they are absent or not scalars.
type Head struct {
	Keys, Spec       []string
	APIVersion, Kind string
}

// group is the API group of tegen.
var group, _, _ = strings.Cut(names.APIVersion, "/")

var (
	inputs  = []string{names.KindTrainingJob, names.KindEnvironment}
	configs = []string{names.KindGenerator, names.KindCheck}
	kinds   = slices.Concat(inputs, configs)
)

// Class returns what a document is to tegen. This is the only place with that rule:
//
//   - A document whose group is tegen.dev is ours. Its kind is Input or Config, or the document is Broken. The version
//     is not looked at: the schema refuses a wrong one.
//   - A document with an apiVersion of another group and a kind is Foreign. It is Broken only if group and kind both
//     resemble ours: tegen.dv/v1alpha1 with kind TrainingJob is a mistake, and so is kind TrainingJob with an
//     apiVersion without a group, since Kubernetes' core API has no such kind. An operator of somebody else may
//     have kinds called TrainingJob and Environment. Only a TrainingJob whose spec has image and workers is ours.
//   - A document without apiVersion or kind is no Kubernetes object and nothing of ours. It is Broken: to pass it
//     through would hide a misspelt key of a job.
func (h Head) Class() Class {
	class, _, _ := h.judge()
	return class
}

// Problem returns the key that makes a document Broken, and what is wrong with it and how to fix it.
func (h Head) Problem() (key, message string) {
	_, key, message = h.judge()
	return key, message
}

func (h Head) judge() (class Class, key, message string) {
	of, _, grouped := strings.Cut(h.APIVersion, "/")
	meant := spelling.Nearest(h.Kind, kinds)
	switch {
	case h.APIVersion == "":
		return Broken, "apiVersion", "required field is missing" + h.Hint("apiVersion")
	case h.Kind == "":
		return Broken, "kind", "required field is missing" + h.Hint("kind")
	case of == group && slices.Contains(inputs, h.Kind):
		return Input, "", ""
	case of == group && slices.Contains(configs, h.Kind):
		return Config, "", ""
	case of == group:
		return Broken, "kind", fmt.Sprintf("must be one of %s, not %q%s", strings.Join(kinds, ", "), h.Kind,
			spelling.Suggest(h.Kind, kinds))
	case meant != "" && (!grouped || resembles(of)), h.Kind == names.KindTrainingJob && h.specIsOurs():
		return Broken, "apiVersion", fmt.Sprintf("must be %s for kind %s, not %q", names.APIVersion, meant,
			h.APIVersion)
	}
	return Foreign, "", ""
}

func (h Head) specIsOurs() bool {
	return slices.Contains(h.Spec, "image") && slices.Contains(h.Spec, "workers")
}

// resembles reports whether a group is most likely tegen's, misspelt. Two letters apart is close enough: three are
// between it and tekton.dev.
func resembles(of string) bool {
	of = strings.ToLower(of)
	return strings.HasPrefix(of, "tegen") || strings.HasSuffix(of, "."+group) || spelling.Distance(of, group) <= 2
}

// Hint ends the message about a missing key: with the key that it was most likely written as.
func (h Head) Hint(missing string) string {
	for _, key := range h.Keys {
		if key != missing && spelling.Nearest(key, []string{"apiVersion", "kind", "metadata", "spec"}) == missing {
			return fmt.Sprintf("; is %q a misspelling of it?", key)
		}
	}
	return ""
}
