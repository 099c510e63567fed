package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/golden"
)

// drawn are the jobs of docs/graph.md, one for each target.
var drawn = []struct{ target, fixture string }{
	{"job", "minimal"},
	{"pods", "imagenet"},
	{"jobset", "torchelastic-jobset-minimal"},
	{"trainjob", "torchelastic-trainjob-minimal"},
	{"vcjob", "torchelastic-vcjob-minimal"},
	{"elasticjob", "torchelastic-elasticjob-imagenet"},
	{"pytorchjob", "torchelastic-pytorchjob"},
	{"mxjob", "mxnet-mxjob-minimal"},
	{"mxjob-mlkube", "mxnet-mxjob-mlkube-local"},
	{"mpijob", "horovod-mpijob-minimal"},
}

// TestGoldenGraphs holds docs/graph.md to what the command prints, and the README's picture.
func TestGoldenGraphs(t *testing.T) {
	docs := golden.Open(t, "../../docs")
	page := "# What refers to what\n\n<!-- Written by 'make golden' of internal/command/graph_test.go. -->\n\n" +
		"`tegen graph job.yaml -o mermaid` prints what is here for each target: the objects of a job, and every\n" +
		"reference that `tegen check` follows. A dashed box is not rendered: it must exist, or its controller makes\n" +
		"it. What a controller makes besides, such as pods, `tegen plan` lists.\n"
	for _, d := range drawn {
		page += fmt.Sprintf("\n## %s\n\n[%s.yaml](../fixtures/valid/%[2]s.yaml)\n\n```mermaid\n%s```\n", d.target,
			d.fixture, graphOf(t, d.fixture, "mermaid"))
	}
	docs.Compare(t, "graph.md", []byte(page))
	docs.Compare(t, "graph.svg", []byte(graphOf(t, "minimal", "svg")))
}

func graphOf(t *testing.T, fixture, format string) string {
	t.Helper()
	var out, notes bytes.Buffer
	code := run(generators.Set{}, []string{"tegen", "graph", "../../fixtures/valid/" + fixture + ".yaml", "-o", format},
		strings.NewReader(""), &out, &notes)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, &notes)
	}
	return out.String()
}
