package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/manifest"
)

const set = `
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: ml}
spec: {clusterIP: None, selector: {job: a}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a, namespace: ml}
spec: {maxUnavailable: 1, selector: {matchLabels: {job: a}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml, annotations: {tegen.dev/expects: Secret/token}}
spec:
  template:
    metadata: {labels: {job: a}}
    spec:
      subdomain: peers
      containers:
      - name: a
        env:
        - {name: RDZV_ENDPOINT, value: "a-0.peers:29400"}
        - {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: t}}}
`

func read(t *testing.T, text string) []runtime.Object {
	t.Helper()
	objects, err := manifest.Read("set", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func draw(t *testing.T, title string, objects []runtime.Object) *Graph {
	t.Helper()
	g, err := Of(title, objects)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMermaid: objects once each, what is not of the set as such, and one line with all that one has of another.
func TestMermaid(t *testing.T) {
	const want = `flowchart LR
  n0["Job<br/>a"]
  n1["PodDisruptionBudget<br/>a"]
  n2["Secret<br/>token"]:::outside
  n3["Service<br/>peers"]
  n0 -->|"uses"| n2
  n0 -->|"dials :29400, named by"| n3
  n1 -->|"selects"| n0
  n3 -->|"selects"| n0
  classDef outside stroke-dasharray: 4 3
`
	if got := draw(t, "a", read(t, set)).Mermaid(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOrder: the order of the objects changes nothing.
func TestOrder(t *testing.T) {
	objects := read(t, set)
	want := draw(t, "a", objects)
	for range 20 {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		got := draw(t, "a", objects)
		if got.SVG() != want.SVG() || got.DOT() != want.DOT() || got.Mermaid() != want.Mermaid() {
			t.Fatal("another order gives another picture")
		}
	}
}

// TestColumns: what selects pods is left of them, what they need to their right, and circles end.
func TestColumns(t *testing.T) {
	g := draw(t, "a", read(t, set))
	boxes, width, height := g.place()
	job, budget, secret, service := boxes[0], boxes[1], boxes[2], boxes[3]
	if budget.x >= job.x || job.x >= secret.x || secret.x != service.x || secret.y == service.y {
		t.Errorf("boxes are at %v", boxes)
	}
	for _, b := range boxes {
		if b.x < 0 || b.y < header || b.x+b.width > width || b.y+boxHeight > height-footer {
			t.Errorf("box %v is not in the picture of %v by %v", b, width, height)
		}
	}
}

// TestHostileNames: no name of an object or job leaves the string that it is in.
func TestHostileNames(t *testing.T) {
	const name = `a"]</text><script>&#--\`
	g := &Graph{
		Title: name, Nodes: []Node{{Kind: "Job", Name: name}, {Kind: name, Name: "b"}},
		Edges: []Edge{{From: 0, To: 1, How: "dials", Label: "dials :" + name}},
	}
	d := xml.NewDecoder(strings.NewReader(g.SVG()))
	elements := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements++
			if e.Name.Local == "script" {
				t.Error("SVG: a name became an element")
			}
		}
	}
	if elements == 0 {
		t.Error("SVG: there is none")
	}
	for _, line := range strings.Split(g.Mermaid(), "\n") {
		if n := strings.Count(line, `"`); n != 0 && n != 2 || strings.Contains(line, "<script") {
			t.Errorf("Mermaid: %s", line)
		}
	}
	if got := g.DOT(); !strings.Contains(got, `n0 [label="Job\na\"]</text><script>&#--\\"]`) {
		t.Errorf("DOT: %s", got)
	}
}

// TestEmpty: a graph of nothing is one.
func TestEmpty(t *testing.T) {
	g := draw(t, "nothing", nil)
	if !strings.HasSuffix(g.SVG(), "</svg>\n") || !strings.HasSuffix(g.DOT(), "}\n") {
		t.Error(g.SVG(), g.DOT())
	}
}
