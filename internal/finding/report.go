package finding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Formats are those of a Report.
var Formats = []string{"json", "sarif", "github"}

// Report is all that one run of a command found.
type Report struct {
	Command  string // vet
	Version  string // of tegen
	Root     string // absolute directory that paths are relative to in SARIF and annotations
	Dir      string // absolute working directory, which the names of files are relative to
	Findings List
	Jobs     string // of import, the TrainingJobs
}

// Write is the report in one of Formats, with a line end.
func (r Report) Write(format string) ([]byte, error) {
	r.Findings = r.Findings.Sorted()
	switch format {
	case "json":
		return indented(r.document())
	case "sarif":
		return indented(r.sarif())
	case "github":
		return r.annotations(), nil
	}
	return nil, fmt.Errorf("unknown format %q", format)
}

// document is what docs/findings.schema.json describes.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Command    string `json:"command"`
	Version    string `json:"version"`
	Errors     int    `json:"errors"`
	Warnings   int    `json:"warnings"`
	Notes      int    `json:"notes"`
	Findings   List   `json:"findings"`
	Jobs       string `json:"jobs,omitempty"`
}

func (r Report) document() document {
	d := document{
		APIVersion: "tegen.dev/v1alpha1", Kind: "Findings", Command: r.Command, Version: r.Version,
		Findings: append(List{}, r.Findings...), Jobs: r.Jobs,
	}
	for i, f := range d.Findings {
		if f.Remedy == "" {
			d.Findings[i].Remedy = RuleOf(f.Rule).Remedy
		}
		switch f.Level {
		case Error:
			d.Errors++
		case Warning:
			d.Warnings++
		case Note:
			d.Notes++
		}
	}
	return d
}

// indented is JSON in which characters that a terminal would obey, or that hide others, are escapes.
func indented(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding findings: %w", err)
	}
	var safe []byte
	for _, c := range out.String() {
		switch {
		case c >= ' ' && c < 0x7f, c == '\n':
			safe = append(safe, byte(c))
		case !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			safe = append(safe, string(c)...)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, c)
		}
	}
	return safe, nil
}

// path is a file by its name from the root, with slashes. One elsewhere is absolute.
func (r Report) path(file string) string {
	if name, err := strconv.Unquote(file); err == nil && strings.HasPrefix(file, `"`) { // it holds what does not print
		file = name
	}
	if file == "<stdin>" || r.Root == "" {
		return filepath.ToSlash(file)
	}
	full := file
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.Dir, full)
	}
	if short, err := filepath.Rel(r.Root, full); err == nil && filepath.IsLocal(short) {
		return filepath.ToSlash(short)
	}
	return filepath.ToSlash(full)
}

// escapes of GitHub's workflow commands: in messages, and in properties.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotations are workflow commands of GitHub, a line each.
func (r Report) annotations() []byte {
	var out []byte
	words := map[Level]string{Error: "error", Warning: "warning", Note: "notice"}
	for _, f := range r.Findings {
		var properties []string
		add := func(name, value string) { properties = append(properties, name+"="+inProperty.Replace(value)) }
		if f.File != "" {
			add("file", r.path(f.File))
		}
		if f.Line > 0 {
			add("line", strconv.Itoa(f.Line))
		}
		if f.Column > 0 {
			add("col", strconv.Itoa(f.Column))
		}
		add("title", "tegen "+f.Rule)
		out = fmt.Appendf(out, "::%s %s::%s\n", words[f.Level], strings.Join(properties, ","),
			inMessage.Replace(f.About()))
	}
	return out
}
