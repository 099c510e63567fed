package main

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
