package manifest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

func printJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(AppendJSON(nil, text))
}

func TestScalarStyle(t *testing.T) {
	same := []string{
		"a", "nginx:1.27", "busybox:1.36@sha256:ab", "--port=80", "-c", "100m", "1Gi", "10.0.0.1", "1.2.3",
		"v1", "a b", "a#b", "it's", `say "hi"`, "a, b", "a[0]", "~/bin", "/bin/sh", "0 3 * * *",
		"app.kubernetes.io/name",
		"2001-01-01-backup", "1e", "0xyz", "é", "日本", "😀", "http://x:80/y?z=1", "$(POD)", "<none>", "a=b", "yesterday",
		"1.x", "-x", "---x", "...x", "_1", "a\\b", "12:ab", "null-ish",
	}
	for _, s := range same {
		if got := printJSON(t, s); got != s+"\n" {
			t.Errorf("%q: got %s, want it plain", s, got)
		}
	}
	quotes := []string{
		"", " ", " a", "a ", "null", "Null", "NULL", "~", "true", "True", "TRUE",
		"false", "yes", "Yes", "YES", "no", "No",
		"NO", "on", "On", "ON", "off", "Off", "OFF", "y", "Y", "n", "N", "0", "8080", "-1", "+12", "1.5", ".5", "5.",
		"-.5",
		"010", "08", "0777", "0o7", "0O7", "0o+7", "0b-1", "-0o7", "0x1F", "0X1f", "0b101", "0B1", "1_000", "1__0",
		"0x_1f", "1_e3", "1e_3",
		"1e3", "1E3", "12e03", "1e+3", "1.e-3", "1234567e89", ".inf", "-.INF", "+.Inf", ".nan", ".NaN", "12:30:45",
		"1:30",
		"8080:80", "190:20:30.15", "2001-01-01", "2001-1-2", "2001-01-01T10:00:00Z", "2001-01-01 10:00:00", "=", "<<",
		"-", "- a", "---", "...", "--- a", "? a", "?a", ":a", ":", ",a", "[a", "]a", "{a", "}a", "#a", "&a",
		"*/5 * * * *",
		"!a", "|a", ">a", "'a'", "%a", "@a", "`a`", "a: b", "a:", "a #b",
	}
	for _, s := range quotes {
		if got := printJSON(t, s); got != `"`+s+"\"\n" {
			t.Errorf("%q: got %s, want it quoted", s, got)
		}
	}
}

func TestScalarText(t *testing.T) {
	tests := map[string]string{
		`"quoted"`:       `"\"quoted\""`,
		"a\tb":           `"a\tb"`,
		"a\r\nb":         `"a\r\nb"`,
		"\x00\x1b\x7f":   `"\x00\x1b\x7f"`,
		"\u0085\u00a0":   `"\x85\xa0"`,
		"\ufeffa":        `"\ufeffa"`,
		"a\u2028\u200bb": `"a\u2028\u200bb"`,
		"\U000e0001":     `"\U000e0001"`,
		"C:\\ #":         `"C:\\ #"`,
		"a\nb":           "|-\n  a\n  b",
		"a\nb\n":         "|\n  a\n  b",
		"a\n\n":          "|+\n  a\n",
		"a\n\n  b: #c\n": "|\n  a\n\n    b: #c",
		"#!/bin/sh\n\tx": "|-\n  #!/bin/sh\n  \tx",
		"a \nb":          `"a \nb"`,
		"a\n ":           `"a\n "`,
		" a\nb":          `" a\nb"`,
		"\ta\nb":         `"\ta\nb"`,
		"\na":            `"\na"`,
		"\n":             `"\n"`,
	}
	for in, want := range tests {
		if got := printJSON(t, in); got != want+"\n" {
			t.Errorf("%q: got %q, want %q", in, got, want+"\n")
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := map[string]string{
		"0": "0", "-12": "-12", "1.5": "1.5", "1e21": "1.0e+21", "1E-7": "1.0e-7", "2.5e+30": "2.5e+30",
		"true": "true", "false": "false", "null": "null",
	}
	for in, want := range tests {
		if got := string(AppendJSON(nil, []byte(in))); got != want+"\n" {
			t.Errorf("%s: got %q", in, got)
		}
	}
}

func TestLayout(t *testing.T) {
	in := `{"a":{"b":{}},"c":[],"d":["x",["w",["z"],[]],{"k":["v"],"l":{"m":1}},{},"p\nq"],` +
		`"8080":null,"y":{"n":"p\nq\n"}}`
	want := `a:
  b: {}
c: []
d:
- x
- - w
  - - z
  - []
- k:
  - v
  l:
    m: 1
- {}
- |-
  p
  q
"8080": null
"y":
  "n": |
    p
    q
`
	if diff := cmp.Diff(want, string(AppendJSON(nil, []byte(in)))); diff != "" {
		t.Error(diff)
	}
}

func TestJSONEscapes(t *testing.T) {
	for in, want := range map[string]string{
		`"\u003ca\u00E9\/\"\\"`: `<aé/"\`,
		`"\ud83d\ude00"`:        "😀",
		`"\ud83dx"`:             "\ufffdx",
		`"\ud83d\u0041"`:        "\ufffdA",
		`"x\b\f"`:               `"x\x08\x0c"`,
	} {
		if got := string(AppendJSON(nil, []byte(in))); got != want+"\n" {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// checkRoundTrip decodes our text with both parsers and compares with v, which
// has to be what encoding/json makes of JSON.
func checkRoundTrip(t *testing.T, v any) {
	t.Helper()
	text := []byte(printJSON(t, v))
	var got3 any
	if err := yamlv3.Unmarshal(text, &got3); err != nil {
		t.Fatalf("yaml/v3: %v\n%s", err, text)
	}
	js, err := json.Marshal(got3)
	if err != nil {
		t.Fatalf("yaml/v3 gave no JSON: %v\n%s", err, text)
	}
	compareJSON(t, "yaml/v3", text, js, v)
	if js, err = yaml.YAMLToJSONStrict(text); err != nil {
		t.Fatalf("sigs.k8s.io/yaml: %v\n%s", err, text)
	}
	compareJSON(t, "sigs.k8s.io/yaml", text, js, v)
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte(" \n")) {
			t.Errorf("trailing space on %q", line)
		}
	}
}

func compareJSON(t *testing.T, parser string, text, js []byte, want any) {
	t.Helper()
	var got any
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s reads another value:\n%s\n%s", parser, text, diff)
	}
}

// inEveryPlace puts s wherever YAML allows a string.
func inEveryPlace(s string) any {
	return map[string]any{
		s:      s,
		"list": []any{s, []any{s, s}, map[string]any{s: s, "z": []any{s}}},
		"map":  map[string]any{"in": map[string]any{s: map[string]any{s: s}}, s + "2": []any{map[string]any{"k": s}}},
		"zz":   s,
	}
}

func fuzzSeeds() []string {
	long := string(bytes.Repeat([]byte("k y: "), 400))
	return []string{
		"", "a", "yes", "a\nb", "a\n\n", "\na", "a: b", "#", "# x\ny", "- a", "\ufeff",
		"\u2028", "\x00", "0x1", "<<", "=",
		"1e3", "a\n---\nb", "---", "--- ", "...\n", "a\n\tb", "a\n  b\n c", "é\n", "\u0085\n", "😀", "'", "\"", "\\",
		"%", "\t", "a\t",
		"a\t#b", "a:\tb", "key:", "?", "? a", ":", "::", "a\r", long, long + "\n" + long,
		string(bytes.Repeat([]byte("\x01"), 500)),
		"x\n#", "x\n\n#y\n", "|", "a\\\nb", "2001-01-01", "0o7", "1_0", "!!str a", "&a", "*a", "{}", "[]", "a\n\n\n",
		"\U0010ffff", "\ufffe",
	}
}

func TestStringsRoundTrip(t *testing.T) {
	for _, s := range fuzzSeeds() {
		checkRoundTrip(t, inEveryPlace(s))
		checkRoundTrip(t, s)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = string(bytes.ToValidUTF8([]byte(s), []byte("\ufffd")))
		checkRoundTrip(t, inEveryPlace(s))
		checkRoundTrip(t, s)
		if isName(s) && styleOf(s) != plain {
			t.Errorf("%q is taken for a name", s)
		}
	})
}

// TestIsName: what is found at a glance is plain at a second one, and what jobs are full of is found.
func TestIsName(t *testing.T) {
	signs := " -_./:=,@+()$%~^*&!?;#'\"\\`|<>[]{}\t\n\x7fé0aZ"
	for _, a := range signs {
		for _, b := range signs {
			for _, s := range []string{
				string(a) + string(b) + "middle", "middle" + string(a) + string(b),
				"--" + string(a) + string(b) + "end", "mid" + string(a) + string(b) + "dle",
				"12" + string(a) + string(b) + "00",
			} {
				if isName(s) && (styleOf(s) != plain || valid(s) != s) {
					t.Errorf("%q is taken for a name", s)
				}
			}
		}
	}
	for _, s := range append(fuzzSeeds(), "falsee", "-.infx", "---xyz", "--- xyz", "2001-1-2x", "0x1234") {
		if isName(s) && styleOf(s) != plain {
			t.Errorf("%q is taken for a name", s)
		}
	}
	for _, s := range []string{"registry.example/a:1.2", "--epochs=90", "app.kubernetes.io/name", "$(A_B):29400"} {
		if isName(s) != (s[0] != '$') {
			t.Errorf("%q: %v", s, isName(s))
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":null}],"c":{}}`, `[[],[[{}]],""]`, `{"":{"":[]}}`, `1e-9`,
		`-0.0`, `[1e300,123456789012345678901234567890]`,
		`{"a":"x\ny","b":["p\n\n",{"y":"\n"}]}`, `{"metadata":{"creationTimestamp":"x"}}`, `"\ud800"`,
		`[[["a\nb"]],true]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Skip()
		}
		if m, ok := v.(map[string]any); ok {
			delete(m, "status")
		}
		if bytes.Contains([]byte(printJSON(t, v)), []byte("creationTimestamp")) {
			t.Skip("pruned")
		}
		checkRoundTrip(t, v)
	})
}
