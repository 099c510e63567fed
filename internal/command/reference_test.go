package command

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/target"
)

const referenceHead = `# What does each field mean?

<!-- Written by 'make golden' of internal/command/reference_test.go, from schema/job.cue and environment.cue. -->

` + "`tegen explain spec.workers`" + ` prints the fields below one, [jobs.md](jobs.md) says which there are by their task. A
field without a default is left out of what is rendered unless its meaning says otherwise. *Carried by* names the
frameworks and targets where a field is not refused, where these are not all: [support.md](support.md) has the
reasons. An example is taken from the fixture that it links to. In a list, a field is one of each item.

`

// TestGoldenReference holds docs/reference.md to the schema, to the table by which targets refuse fields, and to the
// fixtures.
func TestGoldenReference(t *testing.T) {
	examples := readExamples(t)
	r := reference{examples: examples, printed: map[string]string{}}
	job := explainAll(t, names.KindTrainingJob)
	spec := job.Fields[slices.IndexFunc(job.Fields, func(f explained) bool { return f.Path == "spec" })]
	r.section("Top of the file", explained{Fields: withoutBelow(job.Fields)}, "")
	r.section("metadata", job.Fields[2], "metadata.")
	var plain []explained
	for _, f := range spec.Fields {
		if len(f.Fields) == 0 {
			plain = append(plain, f)
		}
	}
	r.section("spec", explained{Doc: "Fields that hold one value, or a list of them.", Fields: plain}, "spec.")
	for _, f := range spec.Fields {
		if len(f.Fields) > 0 {
			r.section(strings.TrimPrefix(f.Path, "spec."), f, "spec.")
		}
	}
	environment := explainAll(t, names.KindEnvironment)
	for _, f := range environment.Fields {
		if f.Path == "spec" {
			r.examples = nil // those of jobs
			r.section("Environment", f, "spec.")
		}
	}
	text := referenceHead + wrapped(strings.Join(r.sections, ", ")+".") + r.page.String()
	golden.Open(t, root+"/docs").Compare(t, "reference.md", []byte(text))
}

func explainAll(t *testing.T, kind string) explained {
	t.Helper()
	e, err := explain(kind, "", true)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func withoutBelow(fields []explained) (all []explained) {
	for _, f := range fields {
		f.Fields = nil
		all = append(all, f)
	}
	return all
}

// reference is the page as it is written.
type reference struct {
	page strings.Builder

	examples map[string]example
	sections []string
	printed  map[string]string // the section that has fields like these already
}

// section is a field and all below it, under paths less a prefix.
func (r *reference) section(title string, f explained, prefix string) {
	fmt.Fprintf(&r.page, "## %s\n\n", title)
	r.sections = append(r.sections, fmt.Sprintf("[%s](#%s)", title,
		strings.ReplaceAll(strings.ToLower(title), " ", "-")))
	if f.Doc != "" {
		fmt.Fprintf(&r.page, "%s", wrapped(f.Doc))
	}
	if by := carriedBy(strings.TrimPrefix(f.Path, "spec.")); f.Path != "" && by != "" && len(f.Fields) > 0 {
		fmt.Fprintf(&r.page, "Carried by %s.\n\n", by)
	}
	r.page.WriteString("| field | must be | default | meaning | carried by | example |\n|---|---|---|---|---|---|\n")
	r.rows(title, f, prefix)
	r.page.WriteString("\n")
}

func (r *reference) rows(section string, parent explained, prefix string) {
	for _, f := range parent.Fields {
		name := strings.TrimPrefix(f.Path, prefix)
		byDefault := f.Default
		if byDefault == "" && f.Required {
			byDefault = "required"
		} else if byDefault != "" {
			byDefault = "`" + byDefault + "`"
		}
		must, like := f.Type, r.like(section, f)
		if like != "" {
			must += fmt.Sprintf(", with the fields of [%s](#%s)", like, strings.ToLower(like))
		}
		by := ""
		if own := carriedBy(name); own != carriedBy(strings.TrimPrefix(parent.Path, "spec.")) {
			by = own
		}
		fmt.Fprintf(&r.page, "| `%s` | %s | %s | %s | %s | %s |\n", name, cell(must), byDefault, cell(f.Doc), by,
			r.example(f))
		if like == "" {
			r.rows(section, f, prefix)
		}
	}
}

// like names the section that has a field of this name with the same fields below it.
func (r *reference) like(section string, f explained) string {
	if len(f.Fields) == 0 {
		return ""
	}
	var key strings.Builder
	outline(&key, "", f.Fields)
	shape := lastName(f.Path) + "\n" + key.String()
	if first, seen := r.printed[shape]; seen && first != section {
		return first
	}
	r.printed[shape] = section
	return ""
}

// example is what a fixture says of the field, or of one of that name below another that is called the same.
func (r *reference) example(f explained) string {
	e, ok := r.examples[f.Path]
	if !ok {
		parent, name := lastTwo(f.Path)
		for _, path := range slices.Sorted(maps.Keys(r.examples)) {
			if p, n := lastTwo(path); p == parent && n == name && len(f.Fields) == 0 {
				e, ok = r.examples[path], true
				break
			}
		}
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("[`%s`](../%s)", strings.ReplaceAll(e.text, "|", "\\|"), e.fixture)
}

func lastTwo(path string) (parent, name string) {
	at := strings.LastIndex(path, ".")
	return lastName(path[:max(at, 0)]), path[at+1:]
}

// cell is text as a table of Markdown takes it.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "{{", "{ {", "\n", " ").Replace(s)
}

// wrapped is a paragraph of lines.
func wrapped(s string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(cell(s)) {
		if width > 0 && width+1+len(word) > 110 {
			b.WriteString("\n")
			width = 0
		} else if width > 0 {
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String() + "\n\n"
}

// carriedBy names the frameworks and targets that do not refuse a field of spec, "" where all carry it. A feature of
// the field's own name, of one above it, or of one of its values decides.
func carriedBy(field string) string {
	var parts []string
	all, refusing := true, map[string][]string{}
	for _, f := range target.Features {
		name, value, ofValue := strings.Cut(f.Name, "=")
		if name != field && (ofValue || !strings.HasPrefix(field+".", name+".")) {
			continue
		}
		for _, t := range target.All {
			if _, no := t.Lacks[f.Name]; no {
				key := ""
				if ofValue {
					key = value
				}
				refusing[key] = append(refusing[key], t.Framework+" "+t.Name)
				all = false
			}
		}
	}
	if all {
		return ""
	}
	for _, value := range slices.Sorted(maps.Keys(refusing)) {
		text := carriers(refusing[value])
		if value != "" {
			text = "`" + value + "`: " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// carriers are the targets of each framework that are not among those that refuse.
func carriers(refusing []string) string {
	var parts []string
	var order []string
	have, count := map[string][]string{}, map[string]int{}
	for _, t := range target.All {
		if !slices.Contains(order, t.Framework) {
			order = append(order, t.Framework)
		}
		count[t.Framework]++
		if !slices.Contains(refusing, t.Framework+" "+t.Name) {
			have[t.Framework] = append(have[t.Framework], t.Name)
		}
	}
	for _, framework := range order {
		switch targets := have[framework]; {
		case len(targets) == 0:
		case len(targets) == count[framework]:
			parts = append(parts, framework)
		default:
			parts = append(parts, framework+" ("+strings.Join(targets, ", ")+")")
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// example is a value of a field that a fixture has.
type example struct{ text, fixture string }

// readExamples are the shortest value of each field among the valid fixtures, by its path, of those that fit a cell.
func readExamples(t *testing.T) map[string]example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "fixtures/valid/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	found := map[string]example{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			var job map[string]any
			if err := yaml.Unmarshal([]byte(doc), &job); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if job["kind"] == names.KindTrainingJob {
				collect(found, "fixtures/valid/"+filepath.Base(file), "", job)
			}
		}
	}
	return found
}

func collect(found map[string]example, fixture, path string, value any) {
	if text := flow(value); path != "" && len(text) <= 48 {
		e := example{lastName(path) + ": " + text, fixture}
		if old, ok := found[path]; !ok || cmp.Or(cmp.Compare(len(e.text), len(old.text)),
			strings.Compare(e.fixture, old.fixture)) < 0 {
			found[path] = e
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			collect(found, fixture, strings.TrimPrefix(path+"."+key, "."), below)
		}
	case []any:
		for _, item := range value {
			if below, ok := item.(map[string]any); ok {
				for key, v := range below {
					collect(found, fixture, path+"."+key, v)
				}
			}
		}
	}
}

// flow is a value in YAML's flow style.
func flow(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, key+": "+flow(value[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, item := range value {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		var back any
		if err := yaml.Unmarshal([]byte("["+value+"]"), &back); err == nil {
			if items, ok := back.([]any); ok && len(items) == 1 && items[0] == value {
				return value
			}
		}
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprint(value)
}
