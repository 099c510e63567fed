package krm_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/krm"
)

const listHead = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"

// item is an object as an item of a list.
func item(object string) string {
	return "- " + strings.ReplaceAll(strings.TrimSuffix(object, "\n"), "\n", "\n  ") + "\n"
}

// TestNoList: a broken list is an error with its line, and nothing is printed.
func TestNoList(t *testing.T) {
	for _, c := range []struct{ what, in, says string }{
		{"nothing", "", "holds no ResourceList"},
		{"a job", job, "holds no ResourceList"},
		{"a list of Kubernetes", "apiVersion: v1\nkind: List\nitems: []\n", "holds no ResourceList"},
		{"no YAML", "kind: ResourceList\nitems: {\n", "line "},
		{
			"two lists", listHead + "items:\n" + item(job) + "---\n" + listHead + "items: []\n",
			"line 16: a second document",
		},
		{"a list and an object", listHead + "items: []\n---\n" + configMap, "line 5: a second document"},
		{"a text for items", listHead + "items: hello\n", `line 3: items: must be a list of objects, not "hello"`},
		{
			"a mapping for items", listHead + "items: {a: b}\n",
			"line 3: items: must be a list of objects, not a mapping",
		},
		{"items twice", listHead + "items: []\nitems:\n" + item(job), "line 4: items is there twice"},
		{
			"a key that nothing is known of", listHead + "items: []\nextra: 1\n",
			"line 4: extra: a ResourceList has apiVersion, kind, items, functionConfig and results",
		},
		{
			"an alias of the configuration", listHead +
				"functionConfig: {kind: ConfigMap, metadata: {name: &n abc}}\n" +
				"items:\n- kind: ConfigMap\n  metadata: {name: *n}\n",
			"line 6: *n in items[0] is an alias of what is outside of it",
		},
		{
			"an alias of another item", listHead + "items:\n- {kind: a, data: &d {b: c}}\n- {kind: b, data: *d}\n",
			"line 5: *d in items[1] is an alias of",
		},
		{
			"an alias of an item in the configuration", listHead +
				"items:\n- {kind: a, data: &d {b: c}}\nfunctionConfig: {kind: ConfigMap, data: *d}\n",
			"line 5: *d in functionConfig is an alias of",
		},
		{
			"an alias of an item in results", listHead + "items:\n- {kind: &k a}\nresults: [{message: *k}]\n",
			"line 5: *k in results is an alias of",
		},
		{"an item that is a text", listHead + "items:\n- x\n", `line 4: items[0]: must be an object, not "x"`},
		{"an item that is nothing", listHead + "items:\n-\n", "line 4: items[0]: must be an object, not nothing"},
		{
			"an item that is another", listHead + "items:\n- &a {kind: x}\n- *a\n",
			"line 5: items[1]: must be an object, not an alias of another",
		},
		{
			"labels in a list", listHead + "items: [{metadata: {labels: [{}]}}]\n",
			"line 3: items[0].metadata.labels: must be a mapping, not a list",
		},
		{
			"a list for a label", listHead + "items: [{metadata: {labels: {a: [1]}}}]\n",
			"line 3: items[0].metadata.labels.a: must be a text, not a list",
		},
		{
			"a text for annotations", listHead + "items: [{metadata: {annotations: x}}]\n",
			`items[0].metadata.annotations: must be a mapping, not "x"`,
		},
		{
			"a list for metadata", listHead + "items: [{metadata: [1]}]\n",
			"items[0].metadata: must be a mapping, not a list",
		},
		{
			"a mapping for a name", listHead + "items: [{metadata: {name: {}}}]\n",
			"items[0].metadata.name: must be a text, not a mapping",
		},
		{"a list for a kind", listHead + "items: [{kind: [a]}]\n", "items[0].kind: must be a text, not a list"},
		{
			"a list for the configuration", listHead + "functionConfig: [1]\n",
			"line 3: functionConfig: must be an object, not a list",
		},
		{
			"a text for the configuration", listHead + "functionConfig: x\n",
			`functionConfig: must be an object, not "x"`,
		},
		{
			"labels of the configuration", listHead + "functionConfig: {metadata: {labels: [1]}}\n",
			"functionConfig.metadata.labels: must be a mapping",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			var out bytes.Buffer
			err := krm.Run(generators.Set{}, []byte(c.in), &out, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if out.Len() > 0 {
				t.Errorf("printed:\n%s", out.String())
			}
		})
	}
}

// TestPassesThrough: comments, styles and order of other items stay as they are.
func TestPassesThrough(t *testing.T) {
	const in = listHead + `items:
# above
- apiVersion: v1 # beside
  kind: ConfigMap
  metadata: {name: a, annotations: {}}
  data:
    # within
    text: |
      one

      two
    quoted: "\u00e9"
    number: '1'
- apiVersion: v1
  kind: Odd
- {apiVersion: v1, kind: Other, metadata: null}
- {apiVersion: v1, kind: &k Own, metadata: {name: *k}}
functionConfig:
  apiVersion: v1
  kind: ConfigMap # what for
  metadata: {name: c}
results:
- message: of another function
`
	for _, text := range []string{in, strings.ReplaceAll(in, "\n", "\r\n"), "---\n" + in + "---\n"} {
		var out bytes.Buffer
		if err := krm.Run(generators.Set{}, []byte(text), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(in, `"\u00e9"`, `"é"`, 1)
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestManyItems: an encoder prints some of the items, so their number must not show.
func TestManyItems(t *testing.T) {
	want := listHead + "items:\n" + strings.Repeat(item("# a note\n"+configMap), 200)
	var out bytes.Buffer
	if err := krm.Run(generators.Set{}, []byte(want), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFormats: objects name their file in the annotations that the items have.
func TestFormats(t *testing.T) {
	const internal, legacy = "internal.config.kubernetes.io/path: a.yaml", "config.kubernetes.io/path: a.yaml"
	filed := func(lines ...string) string {
		return strings.Replace(job, "  namespace: ml\n", "  namespace: ml\n  annotations:\n    "+strings.Join(lines,
			"\n    ")+"\n", 1)
	}
	for _, c := range []struct {
		what             string
		in               string
		internal, legacy bool
	}{
		{"none", "items:\n" + item(job), false, false},
		{"today's", "items:\n" + item(filed(internal)), true, false},
		{"the old ones", "items:\n" + item(filed(legacy)), false, true},
		{"both", "items:\n" + item(filed(internal, legacy)), true, true},
		{"nobody knows", "functionConfig:\n  " + strings.ReplaceAll(job, "\n", "\n  ") + "\n", true, true},
	} {
		var out bytes.Buffer
		if err := krm.Run(generators.Set{}, []byte(listHead+c.in), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		for what, want := range map[string]bool{
			"    internal.config.kubernetes.io/path: 'resnet/worker.yaml'\n" +
				"      internal.config.kubernetes.io/index: '0'\n": c.internal,
			"    config.kubernetes.io/path: 'resnet/worker.yaml'\n      config.kubernetes.io/index: '0'\n": c.legacy,
			"    internal.config.kubernetes.io/path: 'resnet/etcd.yaml'\n" +
				"      internal.config.kubernetes.io/index: '1'\n": c.internal,
		} {
			if got := strings.Contains(out.String(), what); got != want {
				t.Errorf("%s: %t for %q", c.what, got, what)
			}
		}
	}
}

// TestAnnotated: an annotation is added to the others, whatever surrounds them.
func TestAnnotated(t *testing.T) {
	for _, text := range []string{job, strings.Replace(job, "spec:\n", "spec:\n  target: jobset\n", 1)} {
		rl := list(t, "", strings.Replace(text, "  namespace: ml\n",
			"  namespace: ml\n  annotations:\n    internal.config.kubernetes.io/path: a.yaml\n", 1))
		if err := run(t, rl); err != nil {
			t.Fatal(err)
		}
		for _, n := range rl.Items[1:] {
			if got := n.GetAnnotations()["internal.config.kubernetes.io/path"]; !strings.HasPrefix(got, "resnet/") {
				t.Errorf("%s %s goes to %q", n.GetKind(), n.GetName(), got)
			}
			if n.GetName() == "" || n.GetNamespace() != "ml" {
				t.Errorf("a %s lost its name %q or namespace %q", n.GetKind(), n.GetName(), n.GetNamespace())
			}
		}
	}
}

// TestSurrogates: JSON writes characters outside of the first plane as two escapes, which no YAML parser joins.
func TestSurrogates(t *testing.T) {
	in := `{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [{"apiVersion": "v1", "kind": ` +
		`"ConfigMap", "metadata": {"name": "a"}, "data": {"face": "\ud83d\ude00", "text": "\\ud83d\\ude00"}}]}`
	var out bytes.Buffer
	if err := krm.Run(generators.Set{}, []byte(in), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"\U0001F600"`, `\\ud83d\\ude00`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in:\n%s", want, out.String())
		}
	}
}
