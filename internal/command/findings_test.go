package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tegen-dev/tegen/internal/finding"
)

// TestFindings: of every invalid fixture, and of some valid ones for their notes, text, JSON, SARIF and annotations say
// the same at the same places, with one exit code. Text has notes in the order of the jobs.
func TestFindings(t *testing.T) {
	atRoot(t)
	t.Setenv("GITHUB_WORKSPACE", "")
	schema := findingsSchema(t)
	files := fixtures(t, "invalid")
	for i, file := range fixtures(t, "valid") {
		if i%12 == 0 {
			files = append(files, file)
		}
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			none, text, code := tegen("", "vet", file)
			if none != "" {
				t.Errorf("text on standard output: %s", none)
			}
			for format, lines := range map[string]func(*testing.T, string) string{
				"json":   func(t *testing.T, out string) string { return jsonLines(t, schema, out) },
				"sarif":  sarifLines,
				"github": annotationLines,
			} {
				out, msg, same := tegen("", "vet", "-o", format, file)
				if same != code || msg != "" {
					t.Errorf("%s: exit %d, text has %d; standard error: %s", format, same, code, msg)
				}
				if diff := cmp.Diff(sortedLines(text), sortedLines(lines(t, out))); diff != "" {
					t.Errorf("%s (-text +%s):\n%s", format, format, diff)
				}
			}
		})
	}
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

func findingsSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("docs/findings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("findings.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("findings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// jsonLines are the findings of a document as text. The document fulfils its schema, its numbers are those of its
// findings, and each rule is described.
func jsonLines(t *testing.T, schema *jsonschema.Schema, out string) string {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("against docs/findings.schema.json: %v", err)
	}
	var doc struct {
		Errors, Warnings, Notes int
		Findings                []finding.Finding
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	count := map[finding.Level]int{}
	var text strings.Builder
	for _, f := range doc.Findings {
		count[f.Level]++
		if finding.RuleOf(f.Rule).Meaning == "" || f.Remedy == "" {
			t.Errorf("%s: nothing says what it means or what to do", f.Rule)
		}
		fmt.Fprintln(&text, f)
	}
	want := map[finding.Level]int{}
	for level, n := range map[finding.Level]int{
		finding.Error: doc.Errors, finding.Warning: doc.Warnings, finding.Note: doc.Notes,
	} {
		if n > 0 {
			want[level] = n
		}
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("numbers (-document +counted):\n%s", diff)
	}
	return text.String()
}

// sarif is what GitHub's code scanning reads of a log.
type sarif struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name, Version string
				Rules         []struct {
					ID                                      string
					ShortDescription, FullDescription, Help struct{ Text string }
				}
			}
		}
		ColumnKind        string
		AutomationDetails struct{ ID string }
		Invocations       []struct {
			ExecutionSuccessful        bool
			ToolExecutionNotifications []struct {
				Descriptor struct{ ID string }
				Level      string
				Message    struct{ Text string }
			}
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine, StartColumn, EndLine, EndColumn int }
				}
			}
			PartialFingerprints map[string]string
		}
	}
}

// sarifLines are the results and notifications of a log as text. The log has all that GitHub requires.
func sarifLines(t *testing.T, out string) string {
	t.Helper()
	var log sarif
	if err := json.Unmarshal([]byte(out), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.HasPrefix(log.Schema, "https://") || len(log.Runs) != 1 {
		t.Fatalf("no log of SARIF 2.1.0 with one run: %s", out)
	}
	run := log.Runs[0]
	driver := run.Tool.Driver
	if driver.Name != "tegen" || driver.Version == "" || run.ColumnKind != "unicodeCodePoints" ||
		!strings.HasSuffix(run.AutomationDetails.ID, "/") || len(run.Invocations) != 1 {
		t.Errorf("the run is described as %+v", run)
	}
	var ids []string
	for _, r := range driver.Rules {
		texts := []string{r.ShortDescription.Text, r.FullDescription.Text, r.Help.Text}
		if slices.Contains(ids, r.ID) || slices.Contains(texts, "") {
			t.Errorf("rule %+v is there twice, or lacks a text", r)
		}
		ids = append(ids, r.ID)
	}
	var text strings.Builder
	prefix := map[string]string{"note": "note: "}
	prints := map[string]bool{}
	for _, r := range run.Results {
		sum := r.PartialFingerprints["primaryLocationLineHash"]
		if sum == "" || prints[sum] {
			t.Errorf("the fingerprint %q is missing or there twice", sum)
		}
		prints[sum] = true
		if r.RuleIndex < 0 || r.RuleIndex >= len(ids) || ids[r.RuleIndex] != r.RuleID {
			t.Errorf("rule %d is not %s", r.RuleIndex, r.RuleID)
		}
		if len(r.Locations) != 1 || !slices.Contains([]string{"error", "warning", "note"}, r.Level) {
			t.Fatalf("result %+v", r)
		}
		at := r.Locations[0].PhysicalLocation
		if at.Region.EndLine < at.Region.StartLine || at.Region.EndColumn <= at.Region.StartColumn {
			t.Errorf("region %+v", at.Region)
		}
		uri, err := url.Parse(at.ArtifactLocation.URI)
		if err != nil || uri.IsAbs() {
			t.Errorf("%q is no relative URI: %v", at.ArtifactLocation.URI, err)
			continue
		}
		fmt.Fprintf(&text, "%s:%d:%d: %s%s\n", uri.Path, at.Region.StartLine, at.Region.StartColumn, prefix[r.Level],
			r.Message.Text)
	}
	failed := false
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		failed = failed || n.Level == "error"
		fmt.Fprintf(&text, "%s%s\n", prefix[n.Level], n.Message.Text)
	}
	if run.Invocations[0].ExecutionSuccessful == failed {
		t.Errorf("the run succeeded: %t", !failed)
	}
	return text.String()
}

// annotationLines are workflow commands as text, read as GitHub's runner reads them.
func annotationLines(t *testing.T, out string) string {
	t.Helper()
	unescape := strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",")
	var text strings.Builder
	for line := range strings.Lines(out) {
		head, message, ok := strings.Cut(strings.TrimSuffix(line[2:], "\n"), "::")
		word, list, spaced := strings.Cut(head, " ")
		if !strings.HasPrefix(line, "::") || !ok || !spaced {
			t.Errorf("no workflow command: %q", line)
			continue
		}
		f := finding.Finding{Message: unescape.Replace(message), Level: finding.Level(word)}
		if word == "notice" {
			f.Level = finding.Note
		}
		for property := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(property, "=")
			switch value = unescape.Replace(value); name {
			case "file":
				f.File = value
			case "line":
				f.Line, _ = strconv.Atoi(value)
			case "col":
				f.Column, _ = strconv.Atoi(value)
			case "title":
				if rule, ours := strings.CutPrefix(value, "tegen "); !ours || finding.RuleOf(rule).Meaning == "" {
					t.Errorf("the title %q is no rule", value)
				}
			default:
				t.Errorf("GitHub has no property %s", name)
			}
		}
		fmt.Fprintln(&text, f)
	}
	return text.String()
}
