package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/test/meaning"
)

// verdict is what became of a manifest, by a comparison that shares nothing with import's own.
type verdict struct {
	word   string   // equal, named, refused or wrong
	why    []string // the differences that a note names, why it is refused, or what is wrong
	silent []string // differences that need no note: what takes rights away, and what no program notices
}

// judge imports a manifest whose placeholders are filled in, renders it again and compares what the two mean.
func judge(t *testing.T, text string) (v verdict, out importer.Result) {
	t.Helper()
	out = importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	switch {
	case out.Jobs == 0 && len(out.Notes) == 0:
		return verdict{word: "refused", why: []string{"nothing to import"}}, out
	case out.Jobs == 0:
		return verdict{word: "refused", why: []string{out.Notes[len(out.Notes)-1].String()}}, out
	case out.Invalid:
		return verdict{word: "refused", why: []string{blocker(out.Notes)}}, out
	}
	v.word = "equal"
	for _, d := range meaning.Compare(text, renders(t, out.YAML)) {
		switch {
		case d.Class() != meaning.Real:
			v.silent = append(v.silent, d.String())
		case named(d, out.Notes) != "":
			if v.word == "equal" {
				v.word = "named"
			}
			v.why = append(v.why, d.String()+" ["+named(d, out.Notes)+"]")
		default:
			v.word = "wrong"
			v.why = append(v.why, "WRONG "+d.String()+" ("+d.Path+")")
		}
	}
	return v, out
}

// named is the verdict of a note that names a difference, "" for none. A line about all of an object, or about all of a
// container, names none of what is below it.
func named(d meaning.Difference, notes []importer.Note) string {
	for _, n := range notes {
		switch {
		case strings.HasSuffix(d.About, ": ranks") && strings.Contains(n.Why, "ranks do not follow"),
			d.About == "kind" && n.Field == "" && strings.HasPrefix(n.Object, d.Kind):
			return string(n.Verdict)
		case d.Before == "":
			told := n.Verdict != importer.Beside && saysOf(n.Why, d)
			if told || n.Verdict != importer.Added && near(n.Field, d.Path) {
				return string(n.Verdict)
			}
		case n.Verdict != importer.Added && n.Verdict != importer.Beside && strings.HasPrefix(n.Object, d.Kind) &&
			near(n.Field, d.Path):
			return string(n.Verdict)
		}
	}
	return ""
}

// saysOf says whether a line has the words that a difference is about.
func saysOf(why string, d meaning.Difference) bool {
	if strings.Contains(d.About, "security/runAs") {
		return strings.Contains(why, "securityContext, as user")
	}
	for _, word := range strings.FieldsFunc(d.About, func(r rune) bool { return strings.ContainsRune(": ./", r) }) {
		joined := strings.ReplaceAll(word, "-", "") // an option of torchrun is a field of the operator's too
		if !slices.Contains(general, word) &&
			(strings.Contains(why, word) || joined != word && strings.Contains(strings.ToLower(why), joined)) {
			return true
		}
	}
	return false
}

var general = []string{
	"env", "mount", "security", "label", "annotation", "limit", "request", "launcher's", "option", "worker", "launcher",
	"handed", "on", "pods", "true", "spec", "name", "tmp", "etc",
}

// near says whether a line about a place tells of another: the same, one below it, or one just above it.
func near(field, path string) bool {
	if field == "" || path == "" {
		return false
	}
	if program(path) {
		return field == containerOf(path) || program(field) && containerOf(field) == containerOf(path)
	}
	return field == path || isBelow(field, path) || isBelow(path, field) && !whole.MatchString(field)
}

func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

// whole are places that hold much: a line about one of them tells of nothing below it.
var whole = regexp.MustCompile(
	`(spec|template|containers\[\d+\]|Worker|Launcher|Master|tasks\[\d+\]|[jJ]obs\[\d+\])$`)

func program(path string) bool { return inProgram.MatchString(path) }

var inProgram = regexp.MustCompile(`\.(command|args)(\[\d+\])?$`)

func containerOf(path string) string { return inProgram.ReplaceAllString(path, "") }

// TestMeaning holds what published manifests mean against what their import renders. TEGEN_MANIFESTS names another
// folder of manifests.
func TestMeaning(t *testing.T) {
	t.Parallel()
	folder := corpus
	if other := os.Getenv("TEGEN_MANIFESTS"); other != "" {
		folder = other
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Skip("the manifests of others are not on this machine: nothing is compared with them")
	}
	count := map[string]int{}
	var table strings.Builder
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			filled := meaning.Fill(string(text))
			v, out := judge(t, filled)
			count[v.word]++
			fmt.Fprintf(&table, "%-7s %s\n", v.word, name)
			for _, why := range v.why {
				fmt.Fprintf(&table, "        %s\n", why)
			}
			t.Logf("%s\n%s\n%s\n%s%s", filled, out.YAML, strings.Join(v.silent, "\n"), lines(out.Notes), v.word)
		})
	}
	if folder == corpus && (count["equal"] < 54 || count["equal"]+count["named"] < 59 || count["wrong"] > 0) {
		t.Error("fewer manifests mean the same than did")
	}
	t.Logf("%s%d files: %d equal, %d equal but for what notes name, %d refused, %d wrong", table.String(), len(files),
		count["equal"], count["named"], count["refused"], count["wrong"])
}
