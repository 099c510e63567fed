package repo

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a line may have, a tab counting as four.
const widest = 120

// generated are documents whose text is made of other files.
var generated = []string{
	"docs/health.md", "docs/machines.md", "docs/reference.md", "docs/support.md", "docs/targets.md",
}

// TestLines: no line of source or prose is wider than a screen. Test data, raw strings over several lines, and tables
// and listings of Markdown are as they are.
func TestLines(t *testing.T) {
	for _, name := range files(t) {
		if strings.HasPrefix(name, "golden/") || strings.Contains(name, "testdata/") ||
			slices.Contains(generated, name) {
			continue
		}
		exempt := func(string, int) bool { return false }
		switch ext := path.Ext(name); {
		case ext == ".go":
			raw := rawLines(read(t, name))
			exempt = func(_ string, n int) bool { return raw[n] }
		case ext == ".md":
			exempt = listing()
		case ext == ".cue", ext == ".sh", ext == ".py", path.Base(name) == "Makefile", name == ".ci/run":
		default:
			continue
		}
		n := 0
		for line := range strings.Lines(read(t, name)) {
			n++
			if columns := width(strings.TrimRight(line, "\n")); !exempt(line, n) && columns > widest {
				t.Errorf("%s:%d: %d columns, more than %d", name, n, columns, widest)
			}
		}
	}
}

// width counts columns; a tab reaches to the next multiple of four.
func width(line string) int {
	columns := 0
	for part := range strings.SplitAfterSeq(line, "\t") {
		columns += utf8.RuneCountInString(part)
		if strings.HasSuffix(part, "\t") {
			columns += (4 - columns%4) % 4
		}
	}
	return columns
}

// listing tells, line by line, whether Markdown is a table, or a listing between fences.
func listing() func(line string, _ int) bool {
	fenced := false
	return func(line string, _ int) bool {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
		}
		return fenced || strings.HasPrefix(text, "|")
	}
}

// rawLines are the lines of Go source that strings in backquotes over several lines touch.
func rawLines(source string) map[int]bool {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, 0)
	lines := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if first := file.Line(pos); kind == token.STRING && strings.Contains(text, "\n") {
			for n := first; n <= first+strings.Count(text, "\n"); n++ {
				lines[n] = true
			}
		}
	}
}

// TestExemptLines: what is exempt ends where it ends.
func TestExemptLines(t *testing.T) {
	raw := rawLines("package p\n\nconst a = `x\ny`\n\nconst b = `z`\n")
	for n, want := range map[int]bool{2: false, 3: true, 4: true, 5: false, 6: false} {
		if raw[n] != want {
			t.Errorf("line %d of Go is exempt: %t", n, raw[n])
		}
	}
	exempt := listing()
	for n, want := range []bool{false, true, true, false, true, false} {
		line := []string{"prose", "```sh", "make", "```", "| a | b |", "prose"}[n]
		if got := exempt(line, n); got != want && line != "```" {
			t.Errorf("line %d of Markdown, %q, is exempt: %t", n, line, got)
		}
	}
	if got := width("\ta\tb"); got != 9 {
		t.Errorf("two tabs and two letters have %d columns", got)
	}
}
