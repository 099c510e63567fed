package importer_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// TestPrograms gives the containers that train a program of another form than tegen renders there: what runs in the end
// is that program, or a note names its field. Half of it, joined with half of tegen's, is neither.
func TestPrograms(t *testing.T) {
	programField := regexp.MustCompile(`\.(command|args)(\[|$)`)
	for _, name := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := string(renderedFixture(t, name))
			for _, program := range []map[string]any{
				{"command": []string{"python", "train.py", "--lr=1"}},
				{"args": []string{"train.py", "--lr=1"}},
				{"command": []string{"python"}, "args": []string{"train.py", "--lr=1"}},
				{"command": []string{"sh", "-c", "python train.py"}},
				{"command": []string{"torchrun", "train.py"}},
			} {
				out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(programmed(t, stream, program))}})
				if slices.ContainsFunc(out.Notes,
					func(n importer.Note) bool { return programField.MatchString(n.Field) }) {
					continue
				}
				jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: out.YAML}})
				if err != nil {
					t.Errorf("%v: no note names the program, and the job does not load: %v", program, err)
					continue
				}
				bundles, err := render.Jobs(jobs, render.Options{})
				if err != nil {
					t.Fatal(err)
				}
				var b strings.Builder
				if err := render.Write(&b, bundles); err != nil {
					t.Fatal(err)
				}
				want := words(program)
				trainers(t, b.String(), func(c map[string]any) {
					if got := words(c); got != want {
						t.Errorf("%s runs %s, and no note says so", want, got)
					}
				})
			}
		})
	}
}

// programmed is a stream whose training containers run another program.
func programmed(t *testing.T, stream string, program map[string]any) string {
	t.Helper()
	return trainers(t, stream, func(c map[string]any) {
		delete(c, "command")
		delete(c, "args")
		for field, value := range program {
			c[field] = value
		}
	})
}

// words is what a container runs, with an end of the command.
func words(c map[string]any) string { return fmt.Sprint(c["command"], c["args"]) }

// trainers visits the containers that train, which are told by their resources, and gives the stream back.
func trainers(t *testing.T, stream string, visit func(map[string]any)) string {
	t.Helper()
	var docs []string
	for _, doc := range strings.Split(stream, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels["app.kubernetes.io/component"] != "prefetch" {
			visitTrainers(object, visit)
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	return strings.Join(docs, "---\n")
}

var trainerNames = []string{"worker", "pytorch", "mxnet", "node", "elasticjob-worker", "main", "mpi-launcher"}

func visitTrainers(value any, visit func(map[string]any)) {
	switch x := value.(type) {
	case map[string]any:
		containers, _ := x["containers"].([]any)
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok && slices.Contains(trainerNames, fmt.Sprint(c["name"])) {
				visit(c)
			}
		}
		for _, child := range x {
			visitTrainers(child, visit)
		}
	case []any:
		for _, child := range x {
			visitTrainers(child, visit)
		}
	}
}
