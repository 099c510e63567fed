package importer_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// every is how many values of an object are passed over for one that is changed; 1 takes minutes.
const every = 97

// forms are fixtures of every framework and target.
var forms = []string{
	"minimal", "imagenet", "torchelastic-jobset-minimal", "torchelastic-trainjob-minimal",
	"torchelastic-vcjob-minimal", "dlrover-elasticjob-two-of-four", "torchelastic-elasticjob-imagenet",
	"torchelastic-pytorchjob-full", "mxnet-job-minimal", "mxnet-mxjob-minimal",
	"mxnet-mxjob-mlkube-dist", "horovod-mpijob-minimal",
}

// TestMutants changes one value after another of what tegen renders to something of its own, and looks for it in the
// imported job and in what that renders: a value that is in neither, and of which no note tells, was lost silently.
func TestMutants(t *testing.T) {
	for _, name := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var docs []*yaml.Node
			var scalars []*yaml.Node
			for dec := yaml.NewDecoder(bytes.NewReader(renderedFixture(t, name))); ; {
				doc := &yaml.Node{}
				if dec.Decode(doc) != nil {
					break
				}
				docs = append(docs, doc)
				scalars = append(scalars, values(doc)...)
			}
			for i := 0; i < len(scalars); i += every {
				mutate(t, docs, scalars[i], i)
			}
		})
	}
}

// values are the scalars of a document whose change makes another object of it, but no other kind.
func values(n *yaml.Node) (out []*yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		return []*yaml.Node{n}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch key := n.Content[i].Value; key {
			case "apiVersion", "kind":
			default:
				out = append(out, values(n.Content[i+1])...)
			}
		}
	default:
		for _, c := range n.Content {
			out = append(out, values(c)...)
		}
	}
	return out
}

func mutate(t *testing.T, docs []*yaml.Node, n *yaml.Node, i int) {
	t.Helper()
	was, mutant := n.Value, fmt.Sprintf("mutant%d", i)
	switch n.Tag {
	case "!!int":
		mutant = fmt.Sprint(4000 - i)
	case "!!bool", "!!null":
		return
	}
	n.Value = mutant
	defer func() { n.Value = was }()
	var input bytes.Buffer
	enc := yaml.NewEncoder(&input)
	for _, doc := range docs {
		if err := enc.Encode(doc); err != nil {
			t.Fatal(err)
		}
	}
	out := importer.Jobs([]schema.Source{{Name: "mutant.yaml", Data: input.Bytes()}})
	found := string(out.YAML)
	for _, note := range out.Notes { // without the change there is none
		if note.Verdict != importer.Added {
			return
		}
	}
	if jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: out.YAML}}); err == nil {
		if bundles, err := render.Jobs(jobs, render.Options{}); err == nil {
			var b bytes.Buffer
			if err := render.Write(&b, bundles); err != nil {
				t.Fatal(err)
			}
			found += b.String()
		}
	}
	if !strings.Contains(found, mutant) {
		t.Errorf("line %d: %q changed to %q is neither kept nor told", n.Line, was, mutant)
	}
}
