package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestReadInvertsWrite(t *testing.T) {
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "x.io/v1", "kind": "Foo",
		"metadata": map[string]any{"name": "n"},
		"spec": map[string]any{
			"int": int64(1 << 60), "float": 0.5, "null": nil, "list": []any{"yes", true, "---"},
			"text": "a\n---\nb\n\n",
		},
	}}
	want := []runtime.Object{
		sampleJob(), foreign,
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Data:       map[string]string{"on": "a\n---\n...\n", "n": "\n", "b": "\x00"},
			BinaryData: map[string][]byte{"x": {0, 255}},
		},
	}
	var buf bytes.Buffer
	if err := Write(&buf, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read("x.yaml", buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// Quantities remember how they were written.
	got[0].(*batchv1.Job).Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	want[0].(*batchv1.Job).Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := Read("x.yaml", []byte(sampleJobYAML))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleJobYAML, mustAppend(t, again[0])); diff != "" {
		t.Error(diff)
	}
}

func TestReadDocuments(t *testing.T) {
	const ns = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "
	tests := map[string]struct {
		in   string
		want []string
	}{
		"nothing":    {"", nil},
		"comments":   {"# a\n---\n# b\n\n---\n", nil},
		"null":       {"---\nnull\n---\n~\n", nil},
		"no newline": {ns + "a", []string{"a"}},
		"two":        {ns + "a\n---\n" + ns + "b\n", []string{"a", "b"}},
		"leading":    {"# c\n---\n" + ns + "a\n---\n---\n" + ns + "b\n", []string{"a", "b"}},
		"marker line": {
			"--- # one\n" + ns + "a\n--- {apiVersion: v1, kind: Namespace, metadata: {name: b}}\n",
			[]string{"a", "b"},
		},
		"end marker": {ns + "a\n...\n" + ns + "b\n...\n---\n" + ns + "c", []string{"a", "b", "c"}},
		"directive":  {"%YAML 1.1\n---\n" + ns + "a\n", []string{"a"}},
		"windows":    {strings.ReplaceAll("---\n"+ns+"a\n---\n"+ns+"b\n", "\n", "\r\n"), []string{"a", "b"}},
		"bom":        {"\ufeff" + ns + "a\n", []string{"a"}},
		"json":       {`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`, []string{"a"}},
		"anchors":    {"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: &x a\n  namespace: *x\n", []string{"a"}},
		"list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n" +
			"- apiVersion: x/v1\n  kind: F\n  metadata: {name: b}\n", []string{"a", "b"}},
		"list in list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n" +
			"  - {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", []string{"a"}},
		"list of a kind": {"apiVersion: v1\nkind: PodList\nitems:\n- apiVersion: v1\n  kind: Pod\n" +
			"  metadata: {name: a}\n- metadata: {name: b}\n", []string{"a", "b"}},
		"empty list": {"apiVersion: v1\nkind: List\n", nil},
		"foreign kinds": {"apiVersion: v1\nkind: ListOptions\nmetadata: {name: a}\n---\napiVersion: apps/v2\n" +
			"kind: Deployment\nmetadata: {name: b}\n", []string{"a", "b"}},
	}
	for name, tt := range tests {
		objs, err := Read(name, []byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, obj := range objs {
			got = append(got, obj.(metav1.Object).GetName())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReadErrors(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
	tests := []struct{ in, want string }{
		{"a: b\n", "x.yaml:1: reading a document: apiVersion or kind is missing"},
		{"# c\n---\n\nkind: Pod\n", "x.yaml:4: reading a document: apiVersion or kind is missing"},
		{"# c\n\n- a\n", "x.yaml:3: reading a document: want a mapping"},
		{pod + "---\n" + pod + "    imaeg: x\n", `x.yaml:12: reading Pod: unknown field "spec.containers[0].imaeg"`},
		{
			pod + "---\napiVersion: v1\nkind: Pod\nspec:\n  hostPID: 7\n",
			"x.yaml:10: reading Pod: spec.hostPID: got a number, want true or false",
		},
		{pod + "---\napiVersion: v1\nkind: Pod\nkind: Pod\n", `x.yaml:9: parsing YAML: key "kind" already set in map`},
		{pod + "---\n# c\nkind: [a\n", "x.yaml:8: parsing YAML: did not find expected ',' or ']'"},
		{pod + "---\nkind: a: b\n", "x.yaml:7: parsing YAML: mapping values are not allowed in this context"},
		{pod + "---\nkind: x\n\tfoo: y\n", "x.yaml:8: parsing YAML: "},
		{"apiVersion: a/b/c\nkind: Pod\n", "x.yaml:1: reading Pod: unexpected GroupVersion string"},
		{"kind: Pod\napiVersion: 1\n", "x.yaml:2: reading a document: apiVersion: got a number, want a string"},
		{
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n- kind: Pod\n",
			"x.yaml:6: reading a document: apiVersion or kind is missing",
		},
		{
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  spec:\n    bad: 1\n",
			`x.yaml:7: reading Pod: unknown field "spec.bad"`,
		},
		{
			"# c\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n  c.d: no\n",
			"x.yaml:6: reading ConfigMap: data[\"c.d\"]: got true or false, want a string",
		},
		{
			pod + "  - name: b\n    env:\n    - {name: A}\n    - name: B\n      value: 3\n  - name: c\n",
			"x.yaml:10: reading Pod: spec.containers[1].env[1].value: got a number, want a string",
		},
		{pod + "  - image:\n      a: b\n", "x.yaml:6: reading Pod: spec.containers[1].image: got a mapping, want a " +
			"string"},
		{pod + "  - image: []\n", "x.yaml:6: reading Pod: spec.containers[1].image: got a list, want a string"},
		{pod + "  - args: {}\n", "x.yaml:6: reading Pod: spec.containers[1].args: got a mapping, want a list"},
		{pod + "  - args: x\n", "x.yaml:6: reading Pod: spec.containers[1].args: got a string, want a list"},
		{
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  spec:\n    hostPID: 1\n",
			"x.yaml:7: reading Pod: spec.hostPID: got a number, want true or false",
		},
		{"apiVersion: v1\nkind: List\nitems: 3\n", "x.yaml:3: reading List: items: got a number, want a list"},
		{"apiVersion: v1\nkind: List\nitems: [1]\n", "x.yaml:3: reading a document: got a number, want a mapping"},
		{pod + "  - ports: {}\n", "x.yaml:6: reading Pod: spec.containers[1].ports: got a mapping, want a list"},
		{
			pod + "    resources:\n      limits:\n        cpu: 1x\n",
			"x.yaml:8: reading Pod: spec.containers[0].resources.limits.cpu: quantities must",
		},
		{
			pod + "    livenessProbe: {httpGet: {port: [1]}}\n",
			"x.yaml:6: reading Pod: spec.containers[0].livenessProbe.httpGet.port: got a list",
		},
	}
	for _, tt := range tests {
		_, err := Read("x.yaml", []byte(tt.in))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sampleJobYAML))
	f.Add([]byte("---\n...\n---\napiVersion: x/v1\nkind: K\na: [1, {b: yes}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objs, err := Read("x", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x:") {
				t.Errorf("error without a line: %v", err)
			}
			return
		}
		for _, obj := range objs {
			text := mustAppend(t, obj)
			again, err := Read("y", []byte(text))
			if err != nil || len(again) != 1 {
				t.Fatalf("reading back: %d objects, %v\n%s", len(again), err, text)
			}
			if diff := cmp.Diff(text, mustAppend(t, again[0])); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestReadPrinted: what a cluster that is newer than the Go types printed, as YAML and as JSON, is read as far as they
// go.
func TestReadPrinted(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {brandNew: " +
			"1, phase: Running}}\n",
		`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": ` +
			`"a"}, "status": {"brandNew": 1, "phase": "Running"}}]}`,
	} {
		if _, err := Read("x", []byte(text)); err == nil {
			t.Error("Read takes a field that would be lost")
		}
		objects, err := ReadPrinted("x", []byte(text))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%v, %v", objects, err)
		}
		if n, ok := objects[0].(*corev1.Node); !ok || n.Name != "a" || n.Status.Phase != corev1.NodeRunning {
			t.Errorf("%+v", objects[0])
		}
	}
}
