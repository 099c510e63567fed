package tegen_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen"
	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

// asProgram makes the test's binary the program of the example.
const asProgram = "TEGEN_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ExampleMain()
	}
	os.Exit(m.Run())
}

// A program that adds a ConfigMap with the name of its team to each job that has one.
func ExampleMain() {
	tegen.Main(generators.Generator{
		Name: "team",
		Doc:  "ConfigMap with the team of the job, for jobs with the label team",
		Generate: func(j *job.Job) ([]runtime.Object, error) {
			team := j.Metadata.Labels["team"]
			if team == "" {
				return nil, nil
			}
			return []runtime.Object{&corev1.ConfigMap{
				ObjectMeta: generators.Meta(j, j.Metadata.Name+"-team", "team"),
				Data:       map[string]string{"team": team},
			}}, nil
		},
	})
}

// TestMainOfExample runs the example: Main ends the process.
func TestMainOfExample(t *testing.T) {
	const text = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: bert, labels: {team: vision}}\n" +
		"spec: {image: 'a:1', command: [a], workers: {replicas: 1}}\n"
	for _, c := range []struct{ in, args, want string }{
		{text, "render -", "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bert-team\n"},
		{"", "fn --list", "\nteam "},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		cmd.Stdin = strings.NewReader(c.in)
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("tegen %s: %v, without %q:\n%s", c.args, err, c.want, out)
		}
	}
}

// TestDocumentedProgram: the program of docs/extend.md is the example, which compiles and runs.
func TestDocumentedProgram(t *testing.T) {
	var parts []string
	for _, name := range []string{"tegen_test.go", "docs/extend.md"} {
		text, err := os.ReadFile(name)
		_, body, ok := strings.Cut(string(text), "ain() {\n\ttegen.Main(")
		body, _, ended := strings.Cut(body, "\n}\n")
		if err != nil || !ok || !ended {
			t.Fatalf("%s: %v: there is no program", name, err)
		}
		parts = append(parts, body)
	}
	if parts[0] != parts[1] {
		t.Errorf("the programs differ:\n%s\n%s", parts[0], parts[1])
	}
}
