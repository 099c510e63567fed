package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// addPolicyFlag adds the flag that names policies.
func addPolicyFlag(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringArrayVar(names, "policy", nil,
		"rules that jobs and objects must satisfy: a CUE file, a directory of CUE files, or the YAML file of an "+
			"Environment with a fence; may be repeated")
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
	rules, fences, err := readPolicies(names)
	return rules.With(fences), err
}

// readPolicies reads the rules of CUE files, and those of Environments with a fence.
func readPolicies(names []string) (rules, fences *policy.Policy, err error) {
	var sources []policy.Source
	for _, name := range names {
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			text, err := readFile(name, schema.MaxFile)
			if err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", printable(name), err)
			}
			fence, err := schema.FenceOf(printable(name), text)
			if err != nil {
				return nil, nil, err
			}
			fences = fences.With(fence)
			continue
		}
		files, err := policyFiles(name)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			text, err := readFile(file, policy.MaxBytes+1) // Load reports more
			if err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", printable(file), err)
			}
			sources = append(sources, policy.Source{Name: printable(file), Scope: name, Text: text})
		}
	}
	if len(sources) > 0 {
		rules, err = policy.Load(sources, render.PolicyTypes())
	}
	return rules, fences, err
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
