package structural

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// plainTexts are read without the parser of all of YAML; it reads them alike.
var plainTexts = []string{
	"a: b\n",
	"---\n# c\na: b\n\nc:\n  # d\n  e: 12\n  f: [a, --b=1, 'c', \"d\", 7, true]\n  g: []\n",
	"a:\n- b: 1\n  c:\n    d: /x/y:z\n- b: 10Gi\n- e\ng:\n  - h\n",
	"a: []",
	"a: {}\nb: [[c], {}, [[d, {e: 1}]]]\n",
	"a: {b: c, d: [e, {f: \"g, h\"}], i: {j: 'k'}}\n",
	"apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata:\n  name: mnist\n  labels:\n    a.b/c: d\nspec:\n" +
		"  image: registry.example/train:2.0@sha256:1\n  command: [python, -m, \"a b\"]\n" +
		"  workers:\n    replicas: 4\n" +
		"  storage:\n  - name: data\n    mountPath: /data\n    nfs:\n      server: nfs.example\n      path: /x\n",
	"a:   b c\nb.c/d-e: \"# x: y\"\nc: -x",
}

// otherTexts are left to the parser of all of YAML, for what they mean or because they are wrong.
var otherTexts = []string{
	"", "#", "a", "a:", "a: \n", "a: b \n", "a:\n", "a: b\n  c\n", "a: b\n c: d\n", "a:\n   b: c\n  d: e\n",
	"a: yes\n", "yes: a\n", "a: ~\n", "a: 010\n", "a: 1.5\n", "a: 1e3\n", "a: 2001-01-01\n", "a: 1:30\n", "a: .5\n",
	"a: -1\n", "a: --1\n", "a: ---\n", "a: b # c\n", "a: b: c\n", "a: b:\n", "a: &b c\n", "a: *b\n", "a: !b c\n",
	"a: |\n  b\n", "a: >\n  b\n", "a: {b: c,}\n", "a: {b:c}\n", "a: {b: c\n  , d: e}\n", "a: {b: c, b: d}\n",
	"a: {b}\n", "a: { b: c }\n",
	"a: {b: }\n", "a: {b: c]\n", "a: [b}\n", "a: [[b][c]]\n", "a: [b][c]\n", "a: {b: c}: d\n",
	"a: {\n", "a: {b: {c: d}\n",
	"a: -_1\n", "a: [-_0x1]\n", "a: [b,c]\n", "a: [b\n  , c]\n", "a: [b, ]\n", "a: [, b]\n",
	"a: [b: c]\n", "a: \"b\\n\"\n", "a: 'b''c'\n", "a: \"b\n  c\"\n", "a: \"b\" c\n", "a: ü\n",
	"# ü\x00\na: b\n", "a: b\na: c\n", "<<: a\n", "? a\n: b\n", "- - a\n", "-\n  a: b\n",
	"- a\n - b\n", "-  a\n", "a: b\n- c\n",
	"- a\nb: c\n", "a:\n  - b\n - c\n", "a: b\n...\n", "--- a: b\n", "%YAML 1.2\n---\na: b\n", "---\n---\na: b\n",
	"a:\tb\n", "\ta: b\n", "  a: b\n", "a: b\n---\n", "a: b\r\n", "a: 1_000\n", "a: 0x1\n", "a: [1:2]\n", "a: [a\n",
}

func TestPlain(t *testing.T) {
	for _, text := range plainTexts {
		if parsePlain(yamldoc.Document{Line: 1, Text: []byte(text)}) == nil {
			t.Errorf("%q is plain", text)
		}
	}
	for _, text := range otherTexts {
		if parsePlain(yamldoc.Document{Line: 1, Text: []byte(text)}) != nil {
			t.Errorf("%q is not plain", text)
		}
	}
	var wide, long strings.Builder
	for i := range maxPlainFields {
		fmt.Fprintf(&wide, "a%d: b\n", i)
	}
	for long.Len() <= maxPlainText {
		long.WriteString("# a\n")
	}
	for text, plain := range map[string]bool{
		wide.String(): true, wide.String() + "a: b\n": false,
		"a: " + strings.Repeat("[", maxPlainDepth) + strings.Repeat("]", maxPlainDepth) + "\n": false,
		long.String() + "a: b\n": false,
	} {
		if got := parsePlain(yamldoc.Document{Line: 1, Text: []byte(text)}) != nil; got != plain {
			t.Errorf("%.20q ... %d bytes: plain is %t", text, len(text), got)
		}
	}
	deep := strings.Repeat("a:\n", maxPlainDepth+1)
	var nested strings.Builder
	for i, line := range strings.SplitAfter(deep, "\n") {
		nested.WriteString(strings.Repeat(" ", i) + line)
	}
	if parsePlain(yamldoc.Document{Line: 1, Text: []byte(nested.String() + "a: b\n")}) != nil {
		t.Error("deep nesting has no limit")
	}
}

// FuzzPlain: what is read as plain is what the parser of all of YAML reads, each value in its place, without a mistake.
func FuzzPlain(f *testing.F) {
	for _, text := range append(plainTexts, otherTexts...) {
		f.Add([]byte(text))
		f.Add([]byte("a: b\n---\n" + text + "# c"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, doc := range yamldoc.Split("f.yaml", text) {
			got := parsePlain(doc)
			if got == nil {
				continue
			}
			if want := parseAny(doc); want.Errs != nil || !reflect.DeepEqual(want.Root, got) {
				t.Fatalf("%q: %v\n(-parser of YAML +plain):\n%s", doc.Text, want.Errs,
					cmp.Diff(want.Root, got, cmp.AllowUnexported(Node{})))
			}
		}
	})
}
