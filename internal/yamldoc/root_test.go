package yamldoc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestParseStrictRoot: a document that was parsed already is read like its text, and stays as it is.
func TestParseStrictRoot(t *testing.T) {
	for _, text := range []string{
		"a: 1\nb:\n- x\n- y: \"1\"\n  z: null\nc: {}\nd: []\n",
		"a: 010\nb: !!str 1\nc: &x 1\nd: *x\na: 2\n? [k]\n: v\n<<: {e: 1}\n",
		"text\n",
	} {
		parsed := func() *yaml.Node {
			root, err := Document{Line: 1, Text: []byte(text)}.Parse()
			if err != nil {
				t.Fatal(err)
			}
			return root
		}
		root := parsed()
		got, gotErrs := Document{Stream: "s", Line: 1, Root: root}.ParseStrict()
		want, wantErrs := Document{Stream: "s", Line: 1, Text: []byte(text)}.ParseStrict()
		if diff := cmp.Diff(outline(want), outline(got)); diff != "" {
			t.Errorf("%q (-of the text +of the node):\n%s", text, diff)
		}
		if diff := cmp.Diff(words(wantErrs), words(gotErrs)); diff != "" {
			t.Errorf("%q (-of the text +of the node):\n%s", text, diff)
		}
		if diff := cmp.Diff(outline(parsed()), outline(root)); diff != "" {
			t.Errorf("%q was changed (-before +after):\n%s", text, diff)
		}
	}
	long := &yaml.Node{Kind: yaml.ScalarNode, Value: strings.Repeat("x", maxDocument+1)}
	if _, errs := (Document{Line: 1, Root: long}).ParseStrict(); len(errs) != 1 || errs[0].Rule != "size" {
		t.Errorf("a long text: %v", errs)
	}
}

// outline is a tree less its positions.
func outline(n *yaml.Node) (out []any) {
	out = []any{n.Kind, n.Value, KindOf(n), n.Anchor}
	for _, below := range n.Content {
		if below.Line < 1 || below.Column < 1 {
			out = append(out, "a value without a position")
		}
		out = append(out, outline(below))
	}
	return out
}

func words(errs []*Error) (out []string) {
	for _, e := range errs {
		msg, _, _ := strings.Cut(e.Msg, " on line ")
		out = append(out, e.Path.String()+" "+e.Rule+" "+msg)
	}
	return out
}
