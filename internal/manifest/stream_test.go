package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// streamed is what a stream hands on, with documents cut that are longer than most.
func streamed(text string, most int, fields map[string]Fields) (objects []runtime.Object, err error) {
	s := newStream("x", iotest.HalfReader(strings.NewReader(text)), fields, func(obj runtime.Object) error {
		objects = append(objects, obj)
		return nil
	})
	s.most = most
	err = s.run()
	return objects, err
}

const (
	node   = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a\"}"},"status":{"brandNew":[1.5e3,null]}}`
	podOf  = `{"metadata":{"name":"p","labels":{"a":"{[\"😀"}},"spec":{"nodeName":"a","containers":[]}}`
	fooOf  = `{"apiVersion":"x/v1","kind":"Foo","metadata":{"name":"f"}}`
	inLine = "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n    # c\n\n    labels:\n" +
		"      a: |\n        - x\n\n        # no comment\n  spec:\n    containers:\n    - args:\n      - a\n" +
		"      - \"b\n        c\"\n      name: d\n      ports:\n      - containerPort: 1\n" +
		"      resources: {}\n    - name: e\n"
)

// TestStream: whatever form a text has, a stream hands on what ReadPrinted reads of it.
func TestStream(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"blank":         " \n  \n# c\n---\n",
		"one":           node,
		"one, indented": " {\n  \"metadata\" : { \"name\": \"a\" },\"kind\":\"Node\" , \"apiVersion\": \"v1\" }\n",
		"list":          `{"apiVersion":"v1","items":[` + node + "," + fooOf + ` ],"kind":"List","metadata":{}}`,
		"empty list":    `{"apiVersion":"v1","items":[ ],"kind":"List"}`,
		"list in a list": `{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"List","items":[` + node +
			`]}],"kind":"List"}`,
		"documents": "---\n" + node + "\n---\n" + fooOf + "\n",
		"YAML": "apiVersion: v1\nitems:\n" +
			inLine + inLine + "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
		"YAML, indented": "kind: List\napiVersion: v1\nitems:\n  " +
			strings.ReplaceAll(inLine, "\n", "\n  ") + "\n# end\n",
		"YAML, flow":      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n",
		"YAML, no items":  "apiVersion: v1\nkind: List\nitems:\n",
		"YAML, documents": "# c\n---\n" + fooOf + "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n...\n",
		"YAML, windows": strings.ReplaceAll("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n"+
			"    name: p\nkind: List\n", "\n", "\r\n"),
		"braces of YAML": "{apiVersion: v1, kind: Node, metadata: {name: a}}",
		"almost JSON":    `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a",},}`,
		"mark":           "\ufeffapiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
	} {
		want, err := ReadPrinted("x", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, most := range []int{0, maxWhole} {
			if most == 0 && name == "almost JSON" {
				continue
			}
			got, err := streamed(text, most, map[string]Fields{"Node": nil})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %d: %s", name, most, diff)
			}
		}
	}
}

// TestStreamLists: lists of one kind, whose items have none, wherever the list says its own; and JSON after JSON.
func TestStreamLists(t *testing.T) {
	want := &corev1.Pod{}
	if err := json.Unmarshal([]byte(podOf), want); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"kind":"PodList","apiVersion":"v1","items":[` + podOf + "," + podOf + `]}`,
		`{"items":[` + podOf + "," + podOf + `],"kind":"PodList","apiVersion":"v1"}`,
		`{"items":[` + podOf + `],"kind":"PodList","apiVersion":"v1"}{"apiVersion":"v1","kind":"Pod",` + podOf[1:],
		strings.ReplaceAll(`{"kind":"PodList","apiVersion":"v1","items":[`+podOf+","+podOf+`]}`, "deN", `de\u004e`),
		"items:\n- " + podOf + "\n- " + podOf + "\nkind: PodList\napiVersion: v1\n",
		"kind: PodList\napiVersion: v1\nitems:\n- " + podOf + "\n- " + podOf + "\n",
	} {
		short := Fields{"apiVersion": nil, "kind": nil, "metadata": nil, "spec": {"nodeName": nil, "containers": {}}}
		for _, fields := range []map[string]Fields{nil, {"Pod": short}} {
			got, err := streamed(text, 0, fields)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if diff := cmp.Diff([]runtime.Object{want, want}, got); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
	}
}

// TestStreamErrors have the line, and the object where it has a name.
func TestStreamErrors(t *testing.T) {
	pod := "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n    namespace: ml\n"
	tests := []struct{ in, want string }{
		{
			"{\n\"apiVersion\": \"v1\",\n\"items\": [\n" + node,
			"x:4: parsing JSON: the text ends in the middle of an object",
		},
		{
			"{\n\"apiVersion\": \"v1\",\n\"items\": [\n" + node[:len(node)-3],
			"x:4: parsing JSON: the text ends in the middle",
		},
		{
			"{\n\"apiVersion\": \"v1\"\n\"items\": []}",
			"x:3: parsing JSON: invalid character '\"' after object key:value pair",
		},
		{"{\"items\": [{\n\"a\": [1}\n]}", "x:2: parsing JSON: invalid character '}' after array element"},
		{"{\"items\": [{\"a\":\n01}]}", "x:2: parsing JSON: invalid character '1' after object key:value pair"},
		{"{\"items\": [{\"a\": tru}]}", "x:1: parsing JSON: invalid character '}' in literal true (expecting 'e')"},
		{"{\"items\": [{},\n]}", "x:2: parsing JSON: invalid character ']' looking for beginning of value"},
		{"{\"items\": [\n{} {}]}", "x:2: parsing JSON: expected comma after array element"},
		{"{\"items\": [{},\n7]}", "x:2: reading items[1]: want an object"},
		{`{"a": "` + "\n" + `"}`, "x:1: parsing JSON: invalid character '\\n' in string literal"},
		{`{"a" 1}`, "x:1: parsing JSON: expected colon after object key"},
		{`{"a": ` + strings.Repeat("[", 20_000) + "}", "exceeded max depth"},
		{`{"items": [{}], "kind": "Pod", "apiVersion": "v1"}`, ""},
		{"{\n\"kind\": \"Pod\"}", "x:1: reading a document: apiVersion or kind is missing"},
		{`{"items": [{}]}`, "x:1: reading a document: apiVersion or kind is missing"},
		{
			`{"items": [{}], "kind": "List", "apiVersion": "v1"}`,
			"x:1: reading a document: apiVersion or kind is missing",
		},
		{
			`{"items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"},` +
				"\n\"spec\": {\n\"nodeName\": 7}}]}",
			"x:3: reading Pod ml/p: spec.nodeName: got a number, want a string",
		},
		{
			"apiVersion: v1\nkind: List\nitems:\n" + pod + pod + "  spec:\n    nodeName: [a]\n",
			"x:15: reading Pod ml/p: spec.nodeName: got a list",
		},
		{
			"apiVersion: v1\nkind: List\nitems:\n" + pod + pod + "    name: q\n",
			"x:14: parsing YAML: key \"name\" already set",
		},
		{"apiVersion: v1\nkind: List\nitems:\n" + pod + "- a\n", "x:9: reading items[1]: want a mapping"},
		{"items:\n" + pod + "kind: List\n", "x:1: reading a document: apiVersion or kind is missing"},
		{"apiVersion: v1\nkind: List\nitems:\n" + pod + "items:\n" + pod, "parsing YAML: key \"items\" already set"},
		{
			"apiVersion: v1\nkind: List\nitems:\n" + pod + "  spec: *x\n",
			"x:4: parsing YAML: unknown anchor 'x' referenced",
		},
	}
	fields := map[string]Fields{"Pod": {
		"apiVersion": nil, "kind": nil, "metadata": {"name": nil, "namespace": nil}, "spec": {"nodeName": nil},
	}}
	for _, tt := range tests {
		_, err := streamed(tt.in, 0, fields)
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%.80q:\n%v, want %s", tt.in, err, tt.want)
		}
	}
	failing := iotest.ErrReader(errors.New("the disk is gone"))
	for _, text := range []string{"", node, "apiVersion: v1\n", `{"items": [` + node, `{"a`} {
		in := io.MultiReader(strings.NewReader(text), failing)
		err := Stream("x", in, nil, func(runtime.Object) error { return nil })
		if err == nil || err.Error() != "reading x: the disk is gone" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestStreamHolds: of a text of any length a stream holds a window and an object.
func TestStreamHolds(t *testing.T) {
	for form, parts := range map[string][3]string{
		"JSON": {`{"items":[` + fooOf, "," + fooOf, `],"kind":"List","apiVersion":"v1"}`},
		"YAML": {"items:\n", "- " + fooOf + "\n", "kind: List\napiVersion: v1\n"},
	} {
		in := io.MultiReader(strings.NewReader(parts[0]), &repeated{text: parts[1], times: 50_000},
			strings.NewReader(parts[2]))
		count := 0
		s := newStream("x", in, nil, func(runtime.Object) error { count++; return nil })
		s.most = 4096
		if err := s.run(); err != nil || count < 50_000 {
			t.Errorf("%s: %d objects, %v", form, count, err)
		}
		if cap(s.buf) > 2*window {
			t.Errorf("%s: %d bytes are held", form, cap(s.buf))
		}
	}
}

// repeated is a text so many times.
type repeated struct {
	text  string
	times int
	rest  string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.times == 0 {
			return 0, io.EOF
		}
		r.times--
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

var someFields = Fields{
	"apiVersion": nil, "kind": nil, "metadata": {"name": nil, "labels": nil},
	"spec": {
		"template": {"spec": {"containers": {"name": nil, "ports": {"containerPort": nil}, "resources": nil}}},
		"ports":    {"port": nil}, "podSelector": nil, "ingress": {"from": {"podSelector": nil}}, "selector": nil,
	},
	"data": {"nothing": nil},
}

// TestCondenseYAML: lines left out by their indentation leave what leaving fields out of the parsed object leaves.
func TestCondenseYAML(t *testing.T) {
	files, err := filepath.Glob("../../golden/*/base.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	done := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range yamldoc.Split(file, text) {
			if sameCondensed(t, bytes.TrimPrefix(d.Text, []byte(Separator))) {
				done++
			}
		}
	}
	if done < 500 {
		t.Errorf("%d documents were condensed", done)
	}
}

// TestCondenseYAMLForms: what does not look like kubectl's is condensed rightly or not at all.
func TestCondenseYAMLForms(t *testing.T) {
	for text, want := range map[string]bool{
		"metadata:\n  name: a\n  other: |\n    name: b\n\n   # c\n  labels:\n    a: b\n":                  true,
		"spec:\n  ports:\n  - x: 1\n    port: 2\n  -  port: 3\n     y: 1\n  selector:\n  - a\n":           false,
		"spec:\n    ports:\n      - x:\n        - port: 1\n        port: 2\n":                             true,
		"metadata:\n  other: \"a\n    b: c\"\n  name: a\n":                                                true,
		"metadata:\n  other: 'it''s\n    name: c'\n  name: ''\n":                                          true,
		"metadata:\n  other: a\n    b c\n  name: a\n":                                                     true,
		"metadata:\n  other: {a: b}\n  name: [a]\n":                                                       true,
		"metadata: # c\n  name: a\n":                                                                      true,
		"metadata:\n  other: \"a\n  name: b\n  c\"\n  name: a\n":                                          false,
		"metadata:\n  other: 'a\n  name: b'\n  name: a\n":                                                 false,
		"metadata:\n  other: {a: b,\n  name: c}\n  name: a\n":                                             false,
		"metadata:\n  other: &x {a: b}\n  name: a\n":                                                      false,
		"metadata:\n  ? name\n  : a\n":                                                                    false,
		"metadata:\n  \"name\": a\n":                                                                      false,
		"metadata:\n  other: \"a\n":                                                                       false,
		"metadata:\n   name: a\n  other: b\n":                                                             false,
		"spec:\n  ports:\n  - - port: 1\n":                                                                true,
		"spec:\n  ports:\n  -\n    port: 1\n  - port: 2\n":                                                false,
		"a: |2\n    b\nmetadata:\n  name: a\n":                                                            true,
		"spec:\n  selector: >-\n    metadata:\n\n      x\n  ports: null\nmetadata:\n  labels:\n  name: a": true,
	} {
		if got := sameCondensed(t, []byte(text)); got != want {
			t.Errorf("%q: condensed %t, want %t", text, got, want)
		}
	}
}

// sameCondensed says whether a document can be condensed by its lines, and holds that to condensing its JSON.
func sameCondensed(t *testing.T, text []byte) bool {
	t.Helper()
	short, ok := condenseYAML(text, someFields)
	if !ok {
		return false
	}
	left, err := yamldoc.Document{Text: short}.StrictJSON()
	if err != nil {
		return false // all lines are parsed then
	}
	whole, err := yamldoc.Document{Text: text}.StrictJSON()
	if err != nil {
		return true // what is left out may be wrong
	}
	want := condense(nil, whole, someFields)
	if diff := cmp.Diff(withoutNulls(t, want), withoutNulls(t, left)); diff != "" {
		t.Errorf("%s\nbecame\n%s\n%s", text, short, diff)
	}
	return true
}

func withoutNulls(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", text, err))
	}
	var prune func(any) any
	prune = func(value any) any {
		switch x := value.(type) {
		case map[string]any:
			for key, v := range x {
				if x[key] = prune(v); x[key] == nil {
					delete(x, key)
				}
			}
			if len(x) == 0 {
				return nil
			}
		case []any:
			for i := range x {
				x[i] = prune(x[i])
			}
		}
		return value
	}
	return prune(value)
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestStreamEndless: a line or an object without an end is refused before it fills the memory.
func TestStreamEndless(t *testing.T) {
	long := func() io.Reader { return &repeated{text: strings.Repeat("a", window), times: 3 * maxObject / window} }
	for name, in := range map[string]io.Reader{
		"line":   zeros{},
		"object": io.MultiReader(strings.NewReader(`{"a":"`), long()),
		"item":   io.MultiReader(strings.NewReader("{\"items\":[\n{},{\"a\":\""), long()),
		"fields": io.MultiReader(strings.NewReader("{"), &repeated{
			text: `"a":"` + strings.Repeat("a", window) + `",`, times: 3 * maxObject / window,
		}),
	} {
		err := Stream("x", in, nil, func(runtime.Object) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "item" && !strings.HasPrefix(err.Error(), "x:2: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
