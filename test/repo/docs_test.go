package repo

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// frontPage is how many lines a newcomer is asked to read.
const frontPage = 130

func TestFrontPage(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > frontPage {
		t.Errorf("README.md has %d lines, more than %d: move what answers another question to docs", n, frontPage)
	}
}

// TestIndex: docs/README.md lists every page of docs, and each begins with its title. The site's sidebar is made of it:
// a row of a table is an entry, which leads to the first page of the row.
func TestIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, name := range files(t) {
		if path.Dir(name) != "docs" || path.Ext(name) != ".md" {
			continue
		}
		if !strings.HasPrefix(read(t, name), "# ") {
			t.Errorf("%s does not begin with a title", name)
		}
		base := path.Base(name)
		if n := strings.Count(index, " | ["+base+"]("+base+")"); base != "README.md" && n != 1 {
			t.Errorf("docs/README.md has %d rows for %s: give it one, with the question that it answers", n, name)
		}
	}
}

// TestFigures: the times that README and docs/compare.md quote are those of bench/README.md.
func TestFigures(t *testing.T) {
	wall := map[string]string{} // by "jobs program"
	for line := range strings.Lines(read(t, "bench/README.md")) {
		if cells := strings.Split(line, "|"); len(cells) == 11 {
			jobs, program := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
			wall[jobs+" "+program] = strings.TrimSpace(cells[5])
		}
	}
	programs := []string{"tegen", "helm", "kustomize"}
	quoted := 0
	for line := range strings.Lines(read(t, "README.md") + read(t, "docs/compare.md")) {
		cells := strings.Split(line, "|")
		jobs := regexp.MustCompile(`\d+`).FindAllString(cells[min(1, len(cells)-1)], -1)
		if len(cells) < 6 || len(jobs) == 0 || !strings.Contains(line, " ms") {
			continue
		}
		quoted++
		for i, program := range programs {
			for _, n := range jobs {
				if want := wall[n+" "+program]; want == "" || want != "-" && !strings.Contains(cells[2+i], want) {
					t.Errorf("%s: %s takes %q in bench/README.md", strings.TrimSpace(line), program, want)
				}
			}
		}
	}
	if quoted < 4 {
		t.Errorf("%d rows are read, want 4 or more", quoted)
	}
}

// link is a link or an image of Markdown: its target, less a title.
var link = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)

// TestLinks: what documents link to in the repository is there, and so is the heading that a link names.
func TestLinks(t *testing.T) {
	found := 0
	for _, name := range files(t) {
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(prose(read(t, name)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // another host
				continue
			}
			found++
			file := path.Join(path.Dir(name), target)
			if target == "" {
				file = name
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			} else if anchor != "" && path.Ext(file) == ".md" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], file)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d links found: the documents have more", found)
	}
}

// prose is a document less what is between fences, and less code in its lines.
func prose(document string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			b.WriteString(line)
		}
	}
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(b.String(), "`")
}

// anchors are the names of a document's headings, as GitHub makes them: lower-case letters, digits, '-' and '_', a
// hyphen for each space, and -1, -2 for the next ones of a name.
func anchors(document string) (all []string) {
	seen := map[string]int{}
	fenced := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		text := strings.TrimLeft(line, "#")
		if fenced || text == line || !strings.HasPrefix(text, " ") {
			continue
		}
		name := slug(strings.TrimSpace(text))
		if n := seen[name]; n > 0 {
			all = append(all, name+"-"+string(rune('0'+n)))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

func slug(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// TestAnchors: headings have the names that GitHub gives them.
func TestAnchors(t *testing.T) {
	const document = "# What if it is lost?\n\n```sh\n# no heading\n```\n#none\n## `launcher: none`\n## A\n## A\n" +
		"## [Of it](x.md), twice\n"
	want := []string{"what-if-it-is-lost", "launcher-none", "a", "a-1", "of-it-twice"}
	if got := anchors(document); !slices.Equal(got, want) {
		t.Errorf("anchors %q, want %q", got, want)
	}
	for _, m := range link.FindAllStringSubmatch(prose("[a](b.md#c) `[x](y)` ![d\ne](<f g>)\n```\n[z](z)\n```\n"), -1) {
		if m[1] != "b.md#c" && m[1] != "f" {
			t.Errorf("%q is read as a link", m[1])
		}
	}
}
