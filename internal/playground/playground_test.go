package playground

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/finding"
)

const root = "../.."

// fixtures are the texts of all cases of a kind, by their names.
func fixtures(t *testing.T, kind string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "fixtures", kind, "*.yaml"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d fixtures in %s: %v", len(files), kind, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		texts[strings.TrimSuffix(filepath.Base(file), ".yaml")] = read(t, file)
	}
	return texts
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lines are the findings of one level as a command prints them, each with a line end.
func lines(found finding.List, level finding.Level) string {
	var b strings.Builder
	for _, f := range found {
		if f.Level == level {
			b.WriteString(f.String() + "\n")
		}
	}
	return b.String()
}

// TestValid: of every valid fixture come the bytes that tegen render prints, and a picture.
func TestValid(t *testing.T) {
	for name, text := range fixtures(t, "valid") {
		got := Evaluate(text, "")
		if mistakes := lines(got.Findings, "error"); mistakes != "" {
			t.Errorf("%s: %s", name, mistakes)
		}
		if diff := cmp.Diff(read(t, filepath.Join(root, "golden", name, "base.yaml")), got.Objects); diff != "" {
			t.Errorf("%s: objects (-render +playground):\n%s", name, diff)
		}
		if drawn := strings.HasPrefix(got.Graph, "<svg "); drawn == (got.NoGraph != "") {
			t.Errorf("%s: a graph: %t, and why not: %q", name, drawn, got.NoGraph)
		}
	}
}

// TestInvalid: of every invalid fixture come the mistakes that tegen vet prints, each at a place, and no object.
func TestInvalid(t *testing.T) {
	for name, text := range fixtures(t, "invalid") {
		got := Evaluate(text, "")
		said := read(t, filepath.Join(root, "golden", "invalid", name+".txt"))
		want := strings.ReplaceAll(said, "fixtures/invalid/"+name+".yaml", JobFile)
		if diff := cmp.Diff(want, lines(got.Findings, "error")); diff != "" {
			t.Errorf("%s: mistakes (-vet +playground):\n%s", name, diff)
		}
		for _, f := range got.Findings {
			if f.Line < 1 || f.Column < 1 {
				t.Errorf("%s: a finding without a place: %s", name, f)
			}
		}
		if got.Objects+got.Graph != "" {
			t.Errorf("%s: it has objects or a graph", name)
		}
	}
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// TestEnvironment: an Environment in a text of its own has the mistakes that it has beside the job, except that one.
func TestEnvironment(t *testing.T) {
	tried := 0
	for _, kind := range []string{"valid", "invalid"} {
		for name, text := range fixtures(t, kind) {
			var jobs, environments []string
			for _, doc := range separator.Split(text, -1) {
				if strings.Contains(doc, "\nkind: Environment\n") {
					environments = append(environments, doc)
				} else {
					jobs = append(jobs, doc)
				}
			}
			if len(environments) == 0 || len(jobs) == 0 {
				continue
			}
			tried++
			whole := Evaluate(text, "")
			parted := Evaluate(strings.Join(jobs, "---\n"), strings.Join(environments, "---\n"))
			if diff := cmp.Diff(whole.Objects, parted.Objects); diff != "" {
				t.Errorf("%s: objects (-one text +two):\n%s", name, diff)
			}
			// An Environment beside the job is a mistake, which is not one in a text of its own.
			if len(whole.Findings) != len(parted.Findings)+len(environments) {
				t.Errorf("%s: of one text %v, of two %v", name, whole.Findings, parted.Findings)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d fixtures have an Environment", tried)
	}
	got := Evaluate(fixtures(t, "valid")["minimal"], "apiVersion: tegen.dev/v1alpha1\nkind: Environment\n"+
		"metadata: {name: x}\nspec:\n  spot: maybe\n")
	if len(got.Findings) != 1 || got.Findings[0].File != EnvironmentFile || got.Findings[0].Line != 5 {
		t.Errorf("a mistake in the Environment: %v", got.Findings)
	}
}

// TestNothing: texts without a job have one mistake, at a place.
func TestNothing(t *testing.T) {
	environment := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: x}\nspec: {}\n"
	for _, texts := range [][2]string{
		{"", ""}, {"\n# soon\n", ""}, {"", environment}, {environment, ""}, {"\xff", ""},
	} {
		got := Evaluate(texts[0], texts[1])
		if f := got.Findings; len(f) != 1 || f[0].Level != finding.Error || f[0].Line < 1 || got.Objects != "" {
			t.Errorf("%q: %+v", texts, got)
		}
	}
}

// TestMany: of thousands of jobs there are objects, and a sentence in the place of a picture.
func TestMany(t *testing.T) {
	const job = "---\napiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: NAME, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [x], workers: {replicas: 1}}\n"
	var text strings.Builder
	for i := range 500 {
		text.WriteString(strings.ReplaceAll(job, "NAME", "j"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+
			strings.Repeat("y", i/26)))
	}
	got := Evaluate(text.String(), "")
	if got.Objects == "" || got.Graph != "" || !strings.Contains(got.NoGraph, "too many for a picture") {
		t.Errorf("%d bytes of objects, %d of a graph, %q; %v", len(got.Objects), len(got.Graph), got.NoGraph,
			lines(got.Findings, "error"))
	}
}
