package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Support writes the table of what each framework and target can carry, as docs/support.md has it.
func Support() string {
	var b strings.Builder
	b.WriteString(`# What each target can carry

Made from the table by which jobs are refused (schema/targets.go); ` + "`make golden`" +
		` writes it anew. A field that a
target cannot carry is refused with the reason, never dropped.
`)
	triedTable(&b)
	for _, framework := range frameworks() {
		supportTable(&b, framework)
	}
	return b.String()
}

func frameworks() (names []string) {
	for _, t := range Targets {
		if !slices.Contains(names, t.Framework) {
			names = append(names, t.Framework)
		}
	}
	return names
}

// supportTable is a table of features by targets, and below it why not.
func supportTable(b *strings.Builder, framework string) {
	all := slices.Clone(Targets)
	// one a framework: their order is fixed
	for mode, row := range map[string]Target{ModeBytePS: bytePSJob, MXNetLocal: mxnetLocalJob} {
		row.Name += " (mode " + mode + ")"
		all = append(all, row)
	}
	targets := slices.DeleteFunc(all, func(t Target) bool { return t.Framework != framework })
	fmt.Fprintf(b, "\n## %s\n", framework)
	for _, t := range targets {
		if release, old := podReleases[[2]string{t.Framework, t.Name}]; old {
			fmt.Fprintf(b, "\nThe controller of `target: %s` makes pods of Kubernetes %s and loses what came "+
				"later, seccompProfile\namong it: they cannot run in a namespace that enforces the restricted "+
				"Pod Security Standard.\n",
				t.Name, release.version)
		}
	}
	b.WriteString("\n| `spec` |")
	for _, t := range targets {
		fmt.Fprintf(b, " %s |", t.Name)
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(targets)) + "|\n")
	var reasons []string
	for _, f := range Features {
		cells, carried, foreign := "", 0, false
		for _, t := range targets {
			reason, no := t.Lacks[f.Name]
			if !no {
				cells, carried = cells+" yes |", carried+1
				continue
			}
			cells += " – |"
			foreign = foreign || strings.HasPrefix(reason, ownedBy)
			text := strings.ReplaceAll(reason, "<", `\<`) // or Markdown takes what follows for an element of HTML
			reasons = append(reasons, fmt.Sprintf("- `%s`, %s: %s\n", f.Name, t.Name, text))
		}
		if foreign && carried == 0 { // another framework's own section says nothing here
			reasons = reasons[:len(reasons)-len(targets)]
			continue
		}
		fmt.Fprintf(b, "| `%s`: %s |%s\n", f.Name, f.Doc, cells)
	}
	if len(reasons) > 0 {
		b.WriteString("\nWhy not:\n\n" + strings.Join(reasons, ""))
	}
}
