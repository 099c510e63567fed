package yamldoc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"a: 1\n---\nb: 2\n":             {"1 a: 1\n", "2 ---\nb: 2\n"},
		"# c\n---\na: 1\n---\n# c\n":    {"1 # c\n---\na: 1\n", "4 ---\n# c\n"},
		"%YAML 1.1\n---\na: 1":          {"1 %YAML 1.1\n---\na: 1"},
		"a: 1\n...\nb: 2\n...\n\n":      {"1 a: 1\n...\n", "3 b: 2\n...\n", "5 \n"},
		"--- a\n---\tb\n--- # c\n":      {"1 --- a\n", "2 ---\tb\n", "3 --- # c\n"},
		"a: 1\r\n---\r\nb: 2\r\n":       {"1 a: 1\r\n", "2 ---\r\nb: 2\r\n"},
		"a: ---\n---b: 1\n ---\n....\n": {"1 a: ---\n---b: 1\n ---\n....\n"},
	} {
		var got []string
		for _, d := range Split("x", []byte(text)) {
			got = append(got, fmt.Sprintf("%d %s", d.Line, d.Text))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestIsBlank(t *testing.T) {
	for text, want := range map[string]bool{
		"\n# c\n\n": true, "...\n": true, "%YAML 1.1\n": true, "---\n": false, "a": false, "# c\na\n": false,
	} {
		if got := (Document{Text: []byte(text)}).IsBlank(); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestParseStrict: what is refused, where, and what of the document is left.
func TestParseStrict(t *testing.T) {
	for _, c := range []struct{ text, want, left string }{
		{"a: {b: [1, x]}", "", "{a: {b: [1, x]}}"},
		{"a: 1\nb: 2\na: 3\n", "x:7:1: a: the key stands on line 5 already", "{a: 1, b: 2}"},
		{"a: &x 1\nb: [*x]\n", "x:5:4: a: &x: anchors are not supported; write the value out where it is needed\n" +
			"x:6:5: b[0]: *x: aliases are not supported; write the value out", "{a: 1, b: [!]}"},
		{
			"a.b: {c: !!str 1}", `x:5:10: ["a.b"].c: !!str: tags are not supported; quote the value if it is a string`,
			"{a.b: {c: !}}",
		},
		{"a: {<<: {b: 1}, c: 2}", "x:5:5: a: <<: merge keys are not supported; write the fields out", "{a: {c: 2}}"},
		{"? [a]\n: 1\n~: 2\n", "x:5:3: a key that is not a string\nx:7:1: a key that is not a string", "{}"},
		{
			"a: [0x1, 1e3, 010, 1_0, .5, 1.50, -7, 1.5e3]",
			refused("a[0]", 5, "0x1") + refused("a[1]", 10, "1e3") + refused("a[2]", 15, "010") +
				refused("a[3]", 20, "1_0") + refused("a[4]", 25, ".5") + refused("a[7]", 39, "1.5e3"),
			"{a: [!, !, !, !, !, 1.50, -7, !]}",
		},
		{"a:\n\tb: 1", "x:6:1: a tab in the indentation: YAML indents with spaces", ""},
		{"a: [1\n", "x:6:1: not YAML: did not find expected ',' or ']'", ""},
		{"a: 1\n b: 2\n", "x:6:2: not YAML: mapping values are not allowed in this context", ""},
		{"a: 1\nb: é *\n", "", "{a: 1, b: é *}"},
		{"a: é\nb: [é, *y]\n", "x:6:8: *y: aliases are not supported; write the value out", ""},
		{"# c\n%YAML 1.1\n---\na: 1\n", "x:6:1: directives are not supported: remove the line", ""},
		{"# c\n", "", ""},
	} {
		root, errs := Document{Stream: "x", Line: 5, Text: []byte(c.text)}.ParseStrict()
		var lines []string
		for _, e := range errs {
			lines = append(lines, e.Error())
		}
		if diff := cmp.Diff(strings.TrimSuffix(c.want, "\n"), strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
		if diff := cmp.Diff(c.left, flow(root)); diff != "" {
			t.Errorf("what is left of %s (-want +got):\n%s", c.text, diff)
		}
	}
}

func refused(path string, col int, number string) string {
	return fmt.Sprintf("x:5:%d: %s: %s: write numbers in plain decimal, or quote the value if it is a string\n",
		col, path, number)
}

// flow prints a tree, with "!" for what was refused.
func flow(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	var parts []string
	switch KindOf(n) {
	case Invalid:
		return "!"
	case Map:
		for i := 0; i < len(n.Content); i += 2 {
			parts = append(parts, n.Content[i].Value+": "+flow(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case List:
		for _, item := range n.Content {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return n.Value
	}
}

func TestCheckText(t *testing.T) {
	for text, want := range map[string]string{
		"a: \"b\\u0000\"\n": "",
		"\xef\xbb\xbfa":     "x:1:1: the file starts with a byte order mark: save it as UTF-8 without one",
		"\xff\xfea\x00":     "x:1:1: the file starts with a byte order mark: save it as UTF-8 without one",
		"a\né\x00":          "x:2:2: a NUL byte: save the file as plain UTF-8 text",
		"a: b\r\n":          "x:1:5: a carriage return: save the file with LF line ends",
		"a: \xff":           "x:1:4: a byte that is not UTF-8: save the file as UTF-8",
		"a: b\u2028c\u0085\n": "x:1:5: the character U+2028, which is invisible: remove it, or write it as an escape " +
			"in double quotes",
	} {
		got := ""
		if err := CheckText("x", []byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestJSON: the values are those of YAML 1.1, and an error counts lines from the stream's start.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		"a: yes\nb: 010\nc: 1.10":       `{"a":true,"b":8,"c":1.1}`,
		"# c\n":                         "null",
		"a: 1\na: 2\nb: 3\nb: 4\n":      `x:6:1: key "a" already set in map; line 8: key "b" already set in map`,
		"# c\na: [1\n":                  "x:6:1: did not find expected ',' or ']'",
		"# c\n---\na: *x\n":             "x:7:1: unknown anchor 'x' referenced",
		"a: b: c\n":                     "x:5:1: mapping values are not allowed in this context",
		"# c\n\n- \x01\n":               "x:7:1: control characters are not allowed",
		"&a [*a]":                       "x:5:1: anchor 'a' value contains itself",
		"{\"a\": \"\\ud83d\\ude00\"}\n": "x:5:1: found invalid Unicode character escape code",
	} {
		got, err := Document{Stream: "x", Line: 5, Text: []byte(text)}.StrictJSON()
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	if got, err := (Document{Text: []byte("a: 1\na: 2")}).JSON(); err != nil || string(got) != `{"a":2}` {
		t.Errorf("a key that stands twice: %s, %v", got, err)
	}
}

func TestAt(t *testing.T) {
	const text = "a: &x\n  b: 1\nc:\n  <<: *x\n  d:\n  - e: 2\n  - f\ng: *x\n"
	root, err := Document{Stream: "x", Line: 11, Text: []byte(text)}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		want    string
		line    int
		nearest int
	}{
		{"a.b", "1", 12, 12},
		{"c.b", "1", 12, 12},
		{"g.b", "1", 12, 12},
		{"c.d[0].e", "2", 16, 16},
		{"c.d[1]", "f", 17, 17},
		{"c.d[2]", "", 15, 16},
		{"c.z.y", "", 13, 14},
		{"z", "", 11, 11},
	} {
		path := ParsePath(c.path)
		if path.String() != c.path {
			t.Errorf("%s became %s", c.path, path)
		}
		value, line := At(root, path)
		if flow(Target(value)) != c.want || line != c.line {
			t.Errorf("%s: %q on line %d, want %q on %d", c.path, flow(value), line, c.want, c.line)
		}
		if n := Nearest(root, path); n.Line != c.nearest {
			t.Errorf("%s: the nearest value is on line %d, want %d", c.path, n.Line, c.nearest)
		}
	}
}

// TestMerges: a field that is merged is found behind any number of mappings, and mappings that merge themselves, or
// each other in more ways than anybody can walk, end the search.
func TestMerges(t *testing.T) {
	bomb := "a0: &a0 {x: 1}\n"
	for i := 1; i <= 12; i++ {
		all := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", ")
		bomb += fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", i, i, all)
	}
	for text, want := range map[string]string{
		"m: &m {<<: *m}\nn: {<<: *m}\n":                              "",
		"m: &m {<<: *m, x: 2}\nn: {<<: *m}\n":                        "2",
		bomb + "n: {<<: *a12, y: 1}\n":                               "1",
		"o: &o {x: 1}\nn: {<<: [{y: 1}, *o]}\n":                      "1",
		"o: &o {x: 1}\nn: {x: 3, <<: *o}\n":                          "3",
		"n: {<<: {<<: {x: 4}}}\n":                                    "4",
		"n: {<<: 1}\n":                                               "",
		strings.ReplaceAll(bomb, "{x: 1}", "{}") + "n: {<<: *a12}\n": "",
	} {
		root, err := Document{Line: 1, Text: []byte(text)}.Parse()
		if err != nil {
			t.Errorf("%.60q: %v", text, err)
			continue
		}
		got := ""
		if x := Field(root, "n", "x"); x != nil {
			got = x.Value
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}
