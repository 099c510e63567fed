package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// addPolicyFlag adds the flag that names policies.
func addPolicyFlag(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringArrayVar(names, "policy", nil,
		"CUE file, or directory of CUE files, with rules that jobs and objects must satisfy; may be repeated")
	completeBy(cmd, "policy", directories)
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(*names, "") {
			return cli.Usagef("--policy needs the name of a file or directory")
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// loadPolicy reads the policies of all names; nil if there are none.
func loadPolicy(names []string) (*policy.Policy, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var sources []policy.Source
	for _, name := range names {
		files, err := policyFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := readFile(file, policy.MaxBytes+1) // Load reports more
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", printable(file), err)
			}
			sources = append(sources, policy.Source{Name: printable(file), Scope: name, Text: text})
		}
	}
	return policy.Load(sources, render.PolicyTypes())
}

// objectPolicy is loadPolicy for commands that see no jobs.
func objectPolicy(names []string, command string) (*policy.Policy, error) {
	rules, err := loadPolicy(names)
	if err == nil && rules != nil && !rules.HasObjectRules() {
		err = fmt.Errorf("the policy has rules for jobs only, and %s sees no jobs: use it with vet or render", command)
	}
	return rules, err
}

// policyFiles are the CUE files of a directory, or the file itself.
func policyFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the policy: %w", err)
	case !info.IsDir():
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	var files []string
	for _, e := range entries {
		at := filepath.Join(name, e.Name())
		info, err := os.Stat(at)
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case err != nil:
			return nil, fmt.Errorf("reading the policy: %w", err)
		case strings.EqualFold(filepath.Ext(e.Name()), ".cue") && filepath.Ext(e.Name()) != ".cue":
			return nil, fmt.Errorf("reading the policy %s: %s: the name must end in .cue, in small letters: rename it",
				printable(name), printable(e.Name()))
		case filepath.Ext(e.Name()) == ".cue" && !info.IsDir():
			files = append(files, at)
		case info.IsDir():
			return nil, fmt.Errorf("reading the policy %s: %s is a directory: name it with another --policy, or move "+
				"its files", printable(name), printable(e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading the policy %s: there is no .cue file in it", printable(name))
	}
	return files, nil
}

// violatesOnly reports whether an error is nothing but violations of a policy by jobs.
func violatesOnly(err error) bool {
	list := finding.Of(err)
	return len(list) > 0 && !slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Rule != "job/policy" })
}

// atPodTemplates moves violations of rendered pods to the line of a podTemplate that sets the value. The others stay at
// the job.
func atPodTemplates(sources []schema.Source, list finding.List) finding.List {
	texts := map[string][]byte{}
	for _, s := range sources {
		texts[s.Name] = s.Data
	}
	for i, f := range list {
		if f.Rule != "policy/pod" || f.File == "" || f.Line == 0 {
			continue
		}
		text, ok := texts[f.File]
		if !ok {
			read, err := readFile(f.File, schema.MaxFile)
			if err != nil {
				continue // the job's own position stays
			}
			texts[f.File], text = read, read
		}
		if n := inPodTemplate(f, text); n != nil {
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
