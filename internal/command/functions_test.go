package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

var (
	expected = regexp.MustCompile(
		`: ([^:]+) is expected from elsewhere, because spec\.generators is (\w+); add (\w+), `)
	itemOfList = regexp.MustCompile(`(?m)^  kind: (\w+)$`)
)

// TestGoldenGenerators runs each generator alone on the smallest job that docs/functions.md shows, with the fields that
// the registry has for it, and writes the page's table. Without them nothing is rendered, and the error names them.
func TestGoldenGenerators(t *testing.T) {
	atRoot(t)
	const page, start = "docs/functions.md", "<!-- generators -->\n"
	text := content(t, page)
	head, tail, ok := strings.Cut(text, start)
	_, rest, found := strings.Cut(tail, "\n\n")
	_, smallest, shown := strings.Cut(head, "kind: TrainingJob\n")
	if !ok || !found || !shown {
		t.Fatalf("%s has no table behind %q, or no job", page, start)
	}
	smallest, _, _ = strings.Cut("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"+smallest, "```")
	var table strings.Builder
	table.WriteString("| generator | fields of spec | renders | expects from elsewhere |\n|---|---|---|---|\n")
	for _, g := range (generators.Set{}).All() {
		if g.Needs != "" {
			_, msg, code := fnAlone(g.Name, smallest)
			if code != cli.ExitError || !strings.Contains(msg, "spec: {"+g.Needs+"}") {
				t.Errorf("%s without its fields: exit %d: %s", g.Name, code, msg)
			}
		}
		fields := ""
		if g.Needs != "" {
			fields = "`" + g.Needs + "`"
		}
		out, msg, code := fnAlone(g.Name, smallest+indented(g.Needs))
		if code != cli.ExitOK {
			t.Errorf("%s: exit %d: %s", g.Name, code, msg)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", g.Name, fields, kindsOf(out), elsewhere(t, g.Name, msg))
	}
	golden.Open(t, ".").Compare(t, page, []byte(head+start+table.String()+"\n"+strings.TrimLeft(rest, "\n")))
}

// fnAlone runs the function with one generator on a job.
func fnAlone(generator, job string) (stdout, stderr string, code int) {
	return tegen("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n"+
		"  apiVersion: tegen.dev/v1alpha1\n  kind: Generator\n  metadata: {name: alone}\n"+
		"  spec: {generators: ["+generator+"]}\nitems:\n- "+
		strings.ReplaceAll(strings.TrimSpace(job), "\n", "\n  ")+"\n", "fn")
}

// indented are fields in one line as fields of spec.
func indented(fields string) string {
	if fields == "" {
		return ""
	}
	var out strings.Builder
	depth := 0
	out.WriteString("  ")
	for _, r := range fields {
		switch {
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ',' && depth == 0:
			out.WriteString("\n ")
			continue
		}
		out.WriteRune(r)
	}
	return out.String() + "\n"
}

// kindsOf are the kinds that a function adds to the job and its configuration.
func kindsOf(list string) string {
	_, items, _ := strings.Cut(list, "\nitems:")
	var kinds []string
	for _, m := range itemOfList.FindAllStringSubmatch(items, -1) {
		if m[1] != "TrainingJob" && m[1] != "Generator" && !slices.Contains(kinds, m[1]) {
			kinds = append(kinds, m[1])
		}
	}
	return strings.Join(kinds, ", ")
}

// elsewhere is what the notes of a generator expect, with the generator that renders it.
func elsewhere(t *testing.T, name, notes string) string {
	t.Helper()
	var all []string
	for line := range strings.Lines(notes) {
		m := expected.FindStringSubmatch(line)
		if m == nil || m[2] != name {
			t.Errorf("%s: %s", name, line)
			continue
		}
		what := m[1]
		if strings.HasPrefix(what, "pods ") {
			what = "pods"
		}
		if text := what + " (`" + m[3] + "`)"; !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
