package finding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/finding"
)

var wrong = finding.Finding{
	Rule: "job/order", Level: finding.Error, File: "a/b.yaml", Line: 3, Column: 7, Field: "spec.workers.min",
	Message: "2 is above max 1",
}

// TestText: the line of a finding is made of what it has.
func TestText(t *testing.T) {
	for want, f := range map[string]finding.Finding{
		"a/b.yaml:3:7: spec.workers.min: 2 is above max 1": wrong,
		"f:3: no":                          {File: "f", Line: 3, Message: "no", Level: finding.Error},
		"f: note: Job x: spec: so":         {File: "f", Object: "Job x", Field: "spec", Message: "so", Level: "note"},
		"lost":                             {Message: "lost", Level: finding.Warning},
		"f:1:2: note: spec.a: b (and two)": finding.Noted("spec.a: b").At("f:1:2").With(" (and two)"),
		"TrainingJob/x: note: spec.a: b":   finding.Noted("spec.a: b").At("TrainingJob/x"),
		"C:/f:1:2: x":                      finding.Finding{Message: "x"}.At("C:/f:1:2"),
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoted: a note's rule is its field, whatever the index or key.
func TestNoted(t *testing.T) {
	for text, want := range map[string]string{
		"spec.gang.scheduler: off by default":  "note/gang.scheduler spec.gang.scheduler off by default",
		"spec.storage[2].dataset.url: again":   "note/storage.dataset.url spec.storage[2].dataset.url again",
		`spec.workload.labels["a.b/c"]: twice`: `note/workload.labels spec.workload.labels["a.b/c"] twice`,
		"metadata.name: so":                    "note/metadata.name metadata.name so",
		"nothing of a field: so":               "note/job  nothing of a field: so",
	} {
		f := finding.Noted(text)
		if got := f.Rule + " " + f.Field + " " + f.Message; got != want || f.Level != finding.Note {
			t.Errorf("%s: %s %q, want %q", text, f.Level, got, want)
		}
	}
}

// TestOf: errors give up the findings that they are made of, and their text is that of the findings.
func TestOf(t *testing.T) {
	list := finding.List{wrong, {Rule: "job/yaml", Level: finding.Error, File: "c", Line: 1, Message: "no"}}
	plain := errors.New("reading x: no such file")
	for name, c := range map[string]struct {
		err   error
		rules string
	}{
		"none":             {nil, ""},
		"a list":           {list, "job/order job/yaml"},
		"plain":            {plain, "tool/error"},
		"joined":           {errors.Join(plain, nil, list, plain), "tool/error job/order job/yaml tool/error"},
		"joined twice":     {errors.Join(plain, errors.Join(list)), "tool/error job/order job/yaml"},
		"wrapped":          {fmt.Errorf("building x: %w", list), "job/order job/yaml"},
		"wrapped join":     {fmt.Errorf("building x: %w", errors.Join(plain, list)), "tool/error job/order job/yaml"},
		"in the middle":    {fmt.Errorf("building %w, alas", list), "job/order job/yaml"},
		"two that are one": {fmt.Errorf("%w and %w", plain, list), "tool/error"},
	} {
		t.Run(name, func(t *testing.T) {
			got := finding.Of(c.err)
			var rules []string
			for _, f := range got {
				rules = append(rules, f.Rule)
				if f.Remedy == "" {
					t.Errorf("%s has no remedy", f.Rule)
				}
			}
			if all := strings.Join(rules, " "); all != c.rules {
				t.Errorf("rules %q, want %q", all, c.rules)
			}
			if c.err != nil && name != "in the middle" && got.Error() != c.err.Error() {
				t.Errorf("text %q, want %q", got, c.err)
			}
		})
	}
	if list[0].Text != "" || list[0].Remedy != "" {
		t.Error("the list itself was changed")
	}
}

// TestMany: people read the first thousand, machines all.
func TestMany(t *testing.T) {
	list := make(finding.List, 1200)
	for i := range list {
		list[i] = wrong
		list[i].Line = i + 1
	}
	lines := strings.Split(list.Error(), "\n")
	if want := "a/b.yaml:1001:7: spec.workers.min: 2 is above max 1: and 199 more errors"; len(lines) != 1001 ||
		lines[1000] != want {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	if got := strings.Count(write(t, "json", list...), `"rule"`); got != 1200 {
		t.Errorf("JSON has %d findings", got)
	}
	if got := append(list, list...).Once(); len(got) != 1200 {
		t.Errorf("once there are %d", len(got))
	}
}

func write(t *testing.T, format string, list ...finding.Finding) string {
	t.Helper()
	r := finding.Report{Command: "vet", Version: "v1", Root: "/repo", Dir: "/repo/sub", Findings: list}
	text, err := r.Write(format)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnnotations: what would end a property or the command is escaped as GitHub's runner reads it.
func TestAnnotations(t *testing.T) {
	odd := wrong
	odd.File, odd.Message, odd.Level = "100%,a:b.yaml", "100% of\r\n::error::this, and: that", finding.Warning
	odd.Line, odd.Column = 0, 0
	want := "::warning file=sub/100%25%2Ca%3Ab.yaml,title=tegen job/order::spec.workers.min: 100%25 of%0D%0A::error::" +
		"this, and: that\n" +
		"::error file=sub/a/b.yaml,line=3,col=7,title=tegen job/order::spec.workers.min: 2 is above max 1\n" +
		"::notice title=tegen note/job::so\n"
	if diff := cmp.Diff(want, write(t, "github", wrong, odd, finding.Noted("so"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPaths: of SARIF they are relative URI references where they can be.
func TestPaths(t *testing.T) {
	for file, want := range map[string]string{
		"a b/ü#?.yaml":      "sub/a%20b/%C3%BC%23%3F.yaml",
		"100%.yaml":         "sub/100%25.yaml",
		"../a:b.yaml":       "./a:b.yaml",
		"../c.yaml":         "c.yaml",
		"./x/../y.yaml":     "sub/y.yaml",
		"/repo/z.yaml":      "z.yaml",
		"../../other.yaml":  "file:///other.yaml",
		"/elsewhere/a.yaml": "file:///elsewhere/a.yaml",
		"<stdin>":           "%3Cstdin%3E",
		`"a\nb.yaml"`:       "sub/a%0Ab.yaml",
	} {
		f := wrong
		f.File = file
		var log struct {
			Runs []struct {
				Results []struct {
					Locations []struct {
						PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(write(t, "sarif", f)), &log); err != nil {
			t.Fatal(err)
		}
		if got := log.Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

// TestFingerprints: an alert stays the same while its line moves, and two in one file are told apart.
func TestFingerprints(t *testing.T) {
	prints := func(list ...finding.Finding) (out []string) {
		var log struct {
			Runs []struct {
				Results []struct{ PartialFingerprints map[string]string }
			}
		}
		if err := json.Unmarshal([]byte(write(t, "sarif", list...)), &log); err != nil {
			t.Fatal(err)
		}
		for _, r := range log.Runs[0].Results {
			out = append(out, r.PartialFingerprints["primaryLocationLineHash"])
		}
		return out
	}
	moved, other := wrong, wrong
	moved.Line, moved.Message = 9, "3 is above max 1"
	other.Field = "spec.workers.max"
	one := prints(wrong)[0]
	if got := prints(moved)[0]; got != one {
		t.Errorf("moved: %s, before %s", got, one)
	}
	got := prints(wrong, other, moved)
	if got[0] != one || got[1] == one || got[2] == one || got[1] == got[2] || !strings.HasSuffix(got[2], ":2") {
		t.Errorf("of one file: %q", got)
	}
}

// TestHidden: no character that a terminal obeys, or that hides others, comes out as it is, and JSON gives it back.
func TestHidden(t *testing.T) {
	f := wrong
	f.Message = "a\x1b[2Jb\u202ec\u0085d\u2028e\U000e0001f\u00ad<&>"
	for _, format := range []string{"json", "sarif"} {
		text := write(t, format, f)
		if strings.ContainsAny(text, "\x1b\u202e\u0085\u2028\U000e0001\u00ad") {
			t.Errorf("%s has it as it is:\n%s", format, text)
		}
		if !strings.Contains(text, `a\u001b[2Jb\u202ec\u0085d\u2028e\udb40\udc01f\u00ad<&>`) {
			t.Errorf("%s:\n%s", format, text)
		}
	}
	var back struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(write(t, "json", f)), &back); err != nil || back.Findings[0].Message != f.Message {
		t.Errorf("%v: %q", err, back.Findings)
	}
}

// TestOrder: by file, line and column; what has no file comes last.
func TestOrder(t *testing.T) {
	at := func(file string, line, column int) finding.Finding {
		return finding.Finding{File: file, Line: line, Column: column, Message: "x"}
	}
	list := finding.List{at("", 0, 0), at("b", 1, 1), at("a", 10, 1), at("a", 2, 9), at("a", 2, 1)}
	want := finding.List{at("a", 2, 1), at("a", 2, 9), at("a", 10, 1), at("b", 1, 1), at("", 0, 0)}
	if diff := cmp.Diff(want, list.Sorted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFormat: a word that is no format is an error.
func TestFormat(t *testing.T) {
	if text, err := (finding.Report{}).Write("xml"); err == nil {
		t.Errorf("%s", text)
	}
}
