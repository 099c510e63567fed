package render

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// WithObjects adds what a policy refuses of the objects of jobs, where err is nothing but violations by the jobs
// themselves. again renders the jobs once more, with one more option.
func WithObjects(err error, again func(schema.Option) error) error {
	list := finding.Of(err)
	if len(list) == 0 || slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Rule != "job/policy" }) {
		return err
	}
	return errors.Join(err, again(schema.WithoutJobRules()))
}

// AtPodTemplates moves violations of rendered pods to the line of a podTemplate that sets the value. The others stay at
// the job. text returns the content of a file, nil if it cannot be read.
func AtPodTemplates(list finding.List, text func(file string) []byte) finding.List {
	for i, f := range list {
		if f.Rule != "policy/pod" || f.File == "" || f.Line == 0 {
			continue
		}
		if n := inPodTemplate(f, text(f.File)); n != nil {
			list[i].Line, list[i].Column = n.Line, n.Column
		}
	}
	return list
}

// inPodTemplate finds the value of a rendered pod's field in the podTemplates of the job that starts at the finding's
// line.
func inPodTemplate(f finding.Finding, text []byte) *yaml.Node {
	var job *yaml.Node
	for _, doc := range yamldoc.Split(f.File, text) {
		n, err := doc.Parse()
		if n = yamldoc.Target(n); err == nil && n != nil && n.Line <= f.Line {
			job = n
		}
	}
	if job == nil {
		return nil
	}
	path := yamldoc.ParsePath(f.Field)
	at := 0
	for i := range path[:len(path)-1] {
		if path[i] == "template" && (path[i+1] == "spec" || path[i+1] == "metadata") {
			at = i + 1 // the last one: a template of Jobs has a template of pods
		}
	}
	names := strings.Fields(f.Items)
	for _, step := range path[:at] {
		if strings.HasPrefix(step, "[") && len(names) > 0 {
			names = names[1:]
		}
	}
	for _, template := range podTemplates(yamldoc.Field(job, "spec")) {
		if n := matching(template, path[at:], names); n != nil {
			return n
		}
	}
	return nil
}

// podTemplates are the values of every field podTemplate.
func podTemplates(n *yaml.Node) (found []*yaml.Node) {
	if n == nil {
		return nil
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "podTemplate" {
			found = append(found, child)
			continue
		}
		found = append(found, podTemplates(child)...)
	}
	return found
}

// matching is the value at a path; where the author's item of a list lacks it, that item. Items are those with the
// rendered names: an index of a rendered list is not that of the author's. Of items without a name, the only one that
// has the rest of the path is taken.
func matching(n *yaml.Node, path yamldoc.Path, names []string) *yaml.Node {
	switch {
	case n == nil || len(path) == 0:
		return n
	case !strings.HasPrefix(path[0], "["):
		return matching(yamldoc.Field(n, path[0]), path[1:], names)
	case len(names) > 0 && names[0] != "-":
		for _, item := range n.Content {
			if name := yamldoc.Field(item, "name"); name != nil && name.Value == names[0] {
				return cmp.Or(matching(item, path[1:], names[1:]), item)
			}
		}
		return nil
	}
	if i, err := strconv.Atoi(strings.Trim(path[0], "[]")); err == nil && len(path) == 1 && i < len(n.Content) {
		return n.Content[i] // of a list of texts, which is taken as a whole
	}
	if len(names) > 0 {
		names = names[1:]
	}
	var found *yaml.Node
	for _, item := range n.Content {
		if m := matching(item, path[1:], names); m != nil {
			if found != nil {
				return nil
			}
			found = m
		}
	}
	return found
}
