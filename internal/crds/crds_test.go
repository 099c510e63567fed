package crds_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/manifest"
)

// run has every field that testdata/runs.yaml defines, in good order.
const run = `apiVersion: example.com/v1
kind: Run
metadata:
  name: bert
  namespace: training
  labels: {app: bert}
spec:
  steps: 3
  rate: 0.5
  mode: exact
  title: bert
  since: "2026-01-02T03:04:05Z"
  size: many
  port: http
  limits: {cpu: 1, memory: "2"}
  suspend: null
  tags: [a, b]
  shares: [2, 3]
  ports: [{number: 1}, {number: 1, protocol: UDP}]
  source: {git: here}
  groups:
    worker:
      replicas: 2
      bare: {spec: {containers: [{name: worker}]}}
      full: {metadata: {annotations: {example.com/min: "4"}}}
  open: {any: [1], closed: {known: a}}
  object: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: b}}
`

// mutate replaces one passage, which has to be there once: a mutation that changes nothing proves nothing.
func mutate(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is there %d times, want once", old, n)
	}
	return strings.Replace(text, old, replacement, 1)
}

func definitions(t *testing.T, file string) []*crds.Definition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, filepath.Base(file), string(text))
}

func read(t *testing.T, file, text string) []*crds.Definition {
	t.Helper()
	all, err := crds.Read(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	all, err := manifest.Read("objects", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func resource(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	all := objects(t, text)
	if len(all) != 1 {
		t.Fatalf("%d objects, want 1", len(all))
	}
	u, ok := all[0].(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("%T is no custom resource", all[0])
	}
	return u
}

const (
	isUnknown = "is not a field of this CRD, so an API server drops it without a word; " +
		"remove it, or install a CRD that has it"
	isUnknownMeta = "is not a field of metadata, so an API server drops it without a word; remove it"
)

var checks = []struct {
	name, old, new string
	want           []string // field and rule, and ! before what is lost but accepted
}{
	{"nothing", "kind: Run", "kind: Run", nil},
	{"an unknown field", "  steps: 3", "  steps: 3\n  stepz: 3", []string{"!spec.stepz: " + isUnknown}},
	{"an unknown field of the root", "spec:\n", "spek: {}\nspec:\n", []string{"!spek: " + isUnknown}},
	{
		"an unknown field of a list", "{number: 1}", "{number: 1, name: a}",
		[]string{"!spec.ports[0].name: " + isUnknown},
	},
	{
		"metadata of a template that lists none", "bare: {spec",
		"bare: {metadata: {labels: {a: b}, annotations: {a: b}}, spec",
		[]string{
			"!spec.groups.worker.bare.metadata.annotations: " + isUnknown,
			"!spec.groups.worker.bare.metadata.labels: " + isUnknown,
		},
	},
	{
		"an unknown field within an open one", "closed: {known: a}", "closed: {known: a, other: b}",
		[]string{"!spec.open.closed.other: " + isUnknown},
	},
	{
		"an unknown field of metadata", "  name: bert\n", "  name: bert\n  nam: bert\n",
		[]string{"!metadata.nam: " + isUnknownMeta},
	},
	{
		"an unknown field of metadata within", "metadata: {name: a}", "metadata: {name: a, nam: b}",
		[]string{"!spec.object.metadata.nam: " + isUnknown},
	},
	{
		"status", "spec:\n", "status: {phase: a}\nspec:\n",
		[]string{"!status: is written through a subresource of its own, so an API server drops it from what " +
			"creates the object; remove it"},
	},
	{"a null", "  steps: 3", "  steps: 3\n  limit: null\n  tagged: null", []string{"!spec.tagged: " + isUnknown}},
	{
		"a version that is not served", "example.com/v1\n", "example.com/v1alpha1\n",
		[]string{"apiVersion: must be of a version that this CRD serves, v1, not v1alpha1; change it, or install " +
			"a CRD that serves v1alpha1"},
	},

	{
		"a string for a number", "  steps: 3", `  steps: "3"`,
		[]string{"spec.steps: must be of type integer, not string"},
	},
	{
		"a number for a string", "  title: bert", "  title: 4",
		[]string{"spec.title: must be of type string, not integer; put it in quotes"},
	},
	{
		"a number among annotations", `"4"`, "4",
		[]string{"spec.groups.worker.full.metadata.annotations.example.com/min: must be of type string, not " +
			"integer; put it in quotes"},
	},
	{
		"a number among labels", "labels: {app: bert}", "labels: {app: 4}",
		[]string{"metadata.labels: must be of type string, not number; put it in quotes"},
	},
	{
		"a label that is none", "labels: {app: bert}", "labels: {app: /}",
		[]string{`metadata.labels: a valid label must be an empty string or consist of alphanumeric characters, ` +
			`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  ` +
			`or 'my_value',  or '12345', regex used for validation is ` +
			`'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), not "/"`},
	},
	{
		"a list for a map", "source: {git: here}", "source: []",
		[]string{"spec.source: must be of type object, not array"},
	},
	{
		"a list for int or string", "port: http", "port: []",
		[]string{"spec.port: must be of type integer or string, not array"},
	},
	{"a fraction", "steps: 3", "steps: 1.5", []string{"spec.steps: must be of type int32, not float64"}},
	{
		"a value that is none of an enum", "mode: exact", "mode: slow",
		[]string{`spec.mode: must be one of "fast", "exact", not "slow"`},
	},
	{
		"a value below the least", "steps: 3", "steps: 0",
		[]string{"spec.steps: must be greater than or equal to 1, not 0"},
	},
	{"a value at an exclusive bound", "rate: 0.5", "rate: 1", []string{"spec.rate: must be less than 1, not 1"}},
	{"a pattern", "title: bert", "title: Bert", []string{`spec.title: must match '^[a-z]+$', not "Bert"`}},
	{
		"a string that is too long", "title: bert", "title: bertbertbert",
		[]string{"spec.title: must be at most 8 chars long"},
	},
	{
		"a format", `since: "2026-01-02T03:04:05Z"`, "since: today",
		[]string{`spec.since: must be of type date-time, not today`},
	},
	{"a list that is too long", "[a, b]", "[a, b, c, d]", []string{"spec.tags: must have at most 3 items"}},
	{
		"a set with an item twice", "[a, b]", "[a, a]",
		[]string{`spec.tags[1]: "a" is in the list already; change or drop one of the two`},
	},
	{
		"a list with a key twice, once by default", "protocol: UDP", "protocol: TCP",
		[]string{`spec.ports[1]: {"number":1,"protocol":"TCP"} is in the list already; ` +
			`change or drop one of the two`},
	},
	{"a required field", "  steps: 3\n", "", []string{"spec.steps: is required; add it"}},
	{"a required field within a map", "{number: 1}", "{}", []string{"spec.ports[0].number: is required; add it"}},
	{
		"two of alternatives", "{git: here}", "{git: here, path: there}",
		[]string{"spec.source: must validate one and only one schema (oneOf). Found 2 valid alternatives"},
	},
	{
		"a name that is none", "  name: bert", "  name: ''",
		[]string{"metadata.name: name or generateName is required"},
	},
	{"an object without kind within", "kind: Pod, ", "", []string{"spec.object.kind: is required; add it"}},
	{
		"several at once", "  steps: 3\n  rate: 0.5", "  rate: a\n  step: 3",
		[]string{
			"spec.rate: must be of type number, not string", "!spec.step: " + isUnknown,
			"spec.steps: is required; add it",
		},
	},
}

func TestCheck(t *testing.T) {
	runs := definitions(t, "testdata/runs.yaml")[0]
	for _, tc := range checks {
		t.Run(tc.name, func(t *testing.T) {
			u := resource(t, mutate(t, run, tc.old, tc.new))
			before := u.DeepCopy()
			var got []string
			for _, f := range runs.Check(u) {
				if !strings.HasPrefix(f.Object, "Run.example.com training/") || f.File != "runs.yaml" {
					t.Errorf("of %s in %s", f.Object, f.File)
				}
				mark := ""
				if f.Verdict == crds.Dropped {
					mark = "!"
				}
				got = append(got, mark+f.Field+": "+f.Why)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, u); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

// TestAdmit shows what is stored of an object that leaves out what has a default.
func TestAdmit(t *testing.T) {
	runs := definitions(t, "testdata/runs.yaml")[0]
	stored, findings := runs.Admit(resource(t, `
apiVersion: example.com/v1
kind: Run
metadata: {name: bert}
spec: {steps: 1, mode: null, extra: 1, title: null, ports: [{number: 1}]}
`))
	want := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Run", "metadata": map[string]any{"name": "bert"},
		"spec": map[string]any{
			"steps": int64(1), "mode": "fast", "limit": int64(100),
			"ports": []any{map[string]any{"number": int64(1), "protocol": "TCP"}},
		},
	}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(findings) != 1 || findings[0].String() != "Run.example.com default/bert: spec.extra: runs.yaml: "+isUnknown {
		t.Errorf("findings: %v", findings)
	}
	if stored, _ := runs.Admit(resource(t, mutate(t, run, "steps: 3", "steps: a"))); stored != nil {
		t.Errorf("refused, and stored as %v", stored)
	}
}

// TestLegacy: v1beta1 keeps unknown fields unless it says otherwise, and validates in either case.
func TestLegacy(t *testing.T) {
	text, err := os.ReadFile("testdata/legacy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What prunes has to be structural, which a field without a type is not.
	pruning := mutate(t, string(text), "  version: v1\n", "  version: v1\n  preserveUnknownFields: false\n")
	pruning = mutate(t, pruning, "anything: {}", "anything: {x-kubernetes-preserve-unknown-fields: true}")
	versions := mutate(t, string(text), "  version: v1\n",
		"  versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: false}]\n")
	for _, tc := range []struct {
		name, definition, object string
		want                     []string
	}{
		{"unknown fields are kept", string(text), "spec: {endpoint: a, typo: b, anything: {c: d}}", nil},
		{
			"what is known is validated", string(text), "spec: {count: 0}",
			[]string{"spec.count: must be greater than or equal to 1, not 0", "spec.endpoint: is required; add it"},
		},
		{
			"unknown fields are dropped", pruning, "spec: {endpoint: a, typo: b, anything: {c: d}}",
			[]string{"spec.typo: " + isUnknown},
		},
		{"every version has the schema", versions, "spec: {count: 1}", []string{"spec.endpoint: is required; add it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := read(t, "legacy.yaml", tc.definition)[0]
			var got []string
			for _, f := range d.Check(
				resource(t, "apiVersion: example.com/v1\nkind: Legacy\nmetadata: {name: a}\n"+tc.object)) {
				got = append(got, f.Field+": "+f.Why)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckAll evaluates against each file that defines a kind, and names what no file does.
func TestCheckAll(t *testing.T) {
	text, err := os.ReadFile("testdata/runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	older := mutate(t, string(text), "              rate: {type: number, maximum: 1, exclusiveMaximum: true}\n", "")
	all := append(read(t, "old.yaml", older), read(t, "new.yaml", string(text))...)
	findings, undefined := crds.Check(all, objects(t, mutate(t, run, "mode: exact", "mode: slow")+`---
apiVersion: example.org/v1
kind: Walk
metadata: {name: b, namespace: x}
---
apiVersion: example.org/v2
kind: Walk
metadata: {name: a}
---
apiVersion: example.org/v1
kind: Note
metadata: {name: local, annotations: {config.kubernetes.io/local-config: "true"}}
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`))
	var got []string
	for _, f := range findings {
		got = append(got, f.String())
	}
	for _, u := range undefined {
		got = append(got, u.Kind.String()+" "+strings.Join(u.Objects, " "))
	}
	want := []string{
		`Run.example.com training/bert: spec.mode: new.yaml: must be one of "fast", "exact", not "slow"`,
		`Run.example.com training/bert: spec.mode: old.yaml: must be one of "fast", "exact", not "slow"`,
		"Run.example.com training/bert: spec.rate: old.yaml: " + isUnknown,
		"Walk.example.org x/b a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
