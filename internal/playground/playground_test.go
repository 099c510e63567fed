package playground

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/test/cases"
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
		got := Evaluate(text, "", "")
		if mistakes := lines(got.Findings, "error"); mistakes != "" {
			t.Errorf("%s: %s", name, mistakes)
		}
		want, err := cases.Case{Fixture: name, Overlay: cases.Base}.Render(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.Objects); diff != "" {
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
		got := Evaluate(text, "", "")
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
			whole := Evaluate(text, "", "")
			parted := Evaluate(strings.Join(jobs, "---\n"), strings.Join(environments, "---\n"), "")
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
		"metadata: {name: x}\nspec:\n  spot: maybe\n", "")
	if len(got.Findings) != 1 || got.Findings[0].File != EnvironmentFile || got.Findings[0].Line != 5 {
		t.Errorf("a mistake in the Environment: %v", got.Findings)
	}
}

// TestPolicy: under a policy, or an Environment with a fence, a job has the violations that the command prints, as the
// command's own test has them, and no object.
func TestPolicy(t *testing.T) {
	for _, c := range []struct{ script, job, environment, policy, said string }{
		{"policy", "good.yaml", "", "acme.cue", ""},
		{"policy", "bad.yaml", "", "acme.cue", "violations"},
		{"policy", "fenced.yaml", "", "acme.cue", "violations"},
		{"fence", "good.yaml", "lab.yaml", "", ""},
		{"fence", "leaves.yaml", "lab.yaml", "", "leaves"},
		{"fence", "again.yaml", "lab.yaml", "", "again"},
	} {
		files, err := txtar.ParseFile(filepath.Join(root, "internal/command/testdata/script", c.script+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, f := range files.Files {
			texts[f.Name] = string(f.Data)
		}
		var want strings.Builder
		for line := range strings.Lines(texts[c.said]) {
			if after, ok := strings.CutPrefix(line, c.job); ok {
				want.WriteString(JobFile + strings.ReplaceAll(after, "acme.cue:", PolicyFile+":"))
			}
		}
		if texts[c.job] == "" || (want.Len() == 0) != (c.said == "") {
			t.Fatalf("%+v: the script has another form", c)
		}
		got := Evaluate(texts[c.job], texts[c.environment], texts[c.policy])
		if diff := cmp.Diff(want.String(), lines(got.Findings, "error")); diff != "" {
			t.Errorf("%+v: violations (-vet +playground):\n%s", c, diff)
		}
		if (got.Objects == "") == (c.said == "") {
			t.Errorf("%+v: %d bytes of objects", c, len(got.Objects))
		}
	}
}

// TestPolicyPlaces: a violation is marked in the text that has the value, and a mistake of the policy in the policy.
func TestPolicyPlaces(t *testing.T) {
	job := fixtures(t, "valid")["minimal"]
	environment := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: x}\nspec:\n" +
		"  overrides: {image: 'docker.io/x:1'}\n"
	for _, c := range []struct{ environment, policy, want string }{
		{environment, `job: spec: image!: =~"^ghcr"`, "environment.yaml:5:22: spec.image: must match ^ghcr, not " +
			"\"docker.io/x:1\" (policy.cue:1:20)"},
		{environment, `job: spec: image!: =~"^docker"`, ""},
		{"", `pod: spec: hostNetwork!: true`, "job.yaml:2:1: Job training/resnet-worker: spec.template.spec." +
			"hostNetwork: is required (policy.cue:1:12)"},
		{"", " \n\t", ""},
		{"", "\npod: spec: hostNetwrk?: false", "policy.cue:2:12: hostNetwrk: unknown field; did you mean " +
			"\"hostNetwork\"?"},
		{"", "pod: {", "policy.cue:1:7: not CUE: expected '}', found 'EOF'"},
		{"", "// " + strings.Repeat("x", 256<<10), "policy.cue:1:1: a policy file of 262147 bytes exceeds the limit " +
			"of 262144"},
	} {
		got := lines(Evaluate(job, c.environment, c.policy).Findings, "error")
		if diff := cmp.Diff(c.want, strings.TrimSuffix(got, "\n")); diff != "" {
			t.Errorf("%.60s: (-want +got):\n%s", c.policy, diff)
		}
	}
}

// TestExamples: no example of the page has a mistake, and one has a policy, which refuses what its first line says.
func TestExamples(t *testing.T) {
	var examples map[string]struct{ Environment, Policy string }
	text := read(t, filepath.Join(root, "site/playground/examples.json"))
	if err := json.Unmarshal([]byte(text), &examples); err != nil {
		t.Fatal(err)
	}
	policies := 0
	for name, e := range examples {
		job := fixtures(t, "valid")[name]
		environment, policy := "", ""
		if e.Environment != "" {
			environment = read(t, filepath.Join(root, e.Environment))
		}
		if e.Policy != "" {
			policies++
			policy = read(t, filepath.Join(root, e.Policy))
			host := strings.Replace(job, "podTemplate:\n", "podTemplate:\n    spec: {hostNetwork: true}\n", 1)
			other := strings.Replace(host, "ghcr.io/", "docker.io/", 1)
			if got := Evaluate(other, environment, policy); len(got.Findings) != 2 {
				t.Errorf("%s, changed: %v", name, got.Findings)
			}
		}
		if got := Evaluate(job, environment, policy); lines(got.Findings, "error") != "" || got.Objects == "" {
			t.Errorf("%s: %v", name, got.Findings)
		}
	}
	if policies == 0 {
		t.Error("no example has a policy")
	}
}

// TestNothing: texts without a job have one mistake, at a place.
func TestNothing(t *testing.T) {
	environment := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: x}\nspec: {}\n"
	for _, texts := range [][2]string{
		{"", ""}, {"\n# soon\n", ""}, {"", environment}, {environment, ""}, {"\xff", ""},
	} {
		got := Evaluate(texts[0], texts[1], "")
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
	got := Evaluate(text.String(), "", "")
	if got.Objects == "" || got.Graph != "" || !strings.Contains(got.NoGraph, "too many for a picture") {
		t.Errorf("%d bytes of objects, %d of a graph, %q; %v", len(got.Objects), len(got.Graph), got.NoGraph,
			lines(got.Findings, "error"))
	}
}
