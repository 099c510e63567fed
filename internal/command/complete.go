package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/schema"
)

// yamlFiles completes the names of YAML files, and of the directories on the way to them.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// manifests completes the names of files that kubectl reads.
func manifests(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// directories completes the names of directories.
func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// anyFile completes the names of files and directories.
func anyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// one completes the only argument of a command.
func one(by cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return by(cmd, args, word)
	}
}

// fieldsOf completes the path of a field by its next part. One that has fields below it ends in a dot, as a directory
// does in a slash.
func fieldsOf(kind func() string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		parent := word[:max(strings.LastIndex(word, "."), 0)]
		var paths []string
		_, fields, _ := schema.Explain(kind(), parent) // of what does not exist there is nothing
		for _, f := range fields {
			path := f.Path
			if !strings.HasPrefix(path, word) {
				continue
			}
			if _, below, err := schema.Explain(kind(), path); err == nil && len(below) > 0 {
				path += "."
			}
			doc, _, _ := strings.Cut(f.Doc, ". ")
			paths = append(paths, cobra.CompletionWithDesc(path, doc))
		}
		return paths, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// complete offers values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy says how the values of a flag are completed.
func completeBy(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // whoever calls it has defined the flag
	}
}
