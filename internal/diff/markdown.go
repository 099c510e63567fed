package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

const (
	// maxMarkdown is less than the 65,536 characters that a comment on GitHub may have.
	maxMarkdown = 60_000
	// maxRows is how many changes the table has.
	maxRows = 15
)

// MarkdownMark begins what WriteMarkdown writes: a comment that has it is one of ours, to be replaced.
const MarkdownMark = "<!-- tegen diff -->"

// WriteMarkdown writes the report as a comment on a pull request: the worst changes in a table, all of them folded
// below, as far as a comment has room.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n**tegen diff**: %s\n", MarkdownMark, r.Summary())
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "\n**warning**: %s\n", escaped(warning))
	}
	if len(r.Jobs) > 0 {
		r.table(&b)
	}
	for i := range r.Jobs {
		part := r.Jobs[i].folded()
		if b.Len()+len(part) > maxMarkdown {
			fmt.Fprintf(&b, "\n%s left out, since a comment has no room for more: run `tegen diff`.\n",
				count(len(r.Jobs)-i, "job is", "jobs are"))
			break
		}
		b.WriteString(part)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (r *Report) table(b *strings.Builder) {
	b.WriteString("\n| class | job | object | field | why, and what to do |\n|---|---|---|---|---|\n")
	rows, all := 0, 0
	for i := range r.Jobs {
		for _, g := range r.Jobs[i].groups() {
			if all++; rows == maxRows {
				continue
			}
			rows++
			field, why := "", g.why
			if len(g.lines) > 0 {
				field = "<code>" + escaped(cut(g.lines[0], 160)) + "</code>"
			}
			if more := len(g.lines) - 1; more > 0 {
				field += fmt.Sprintf(" and %d more", more)
			}
			if g.remedy != "" {
				why += "; to do: " + g.remedy
			}
			objects := cut(strings.Join(g.objects, ", "), 120)
			fmt.Fprintf(b, "| **%s** | %s | %s | %s | %s |\n", g.Class, escaped(r.Jobs[i].title()), escaped(objects),
				field, escaped(why))
		}
	}
	if all > rows {
		fmt.Fprintf(b, "\n%s below.\n", count(all-rows, "more row", "more rows"))
	}
}

// folded is all of a job, as text, behind a click.
func (j *Job) folded() string {
	var text strings.Builder
	j.writeText(&text)
	fence := "```"
	for strings.Contains(text.String(), fence) {
		fence += "`"
	}
	return fmt.Sprintf("\n<details><summary>%s: %s</summary>\n\n%stext\n%s%s\n\n</details>\n", escaped(j.title()),
		j.Worst.Meaning(), fence, text.String(), fence)
}

func cut(s string, longest int) string {
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}

// special are the characters that Markdown or HTML may take for more than themselves, a mention of somebody among it.
var special = lazy.Regexp("[^\\pL\\pN ,.;:/()=\"'…-]")

// escaped is a text that Markdown shows as it is.
func escaped(s string) string {
	return special().ReplaceAllStringFunc(s, func(c string) string { return fmt.Sprintf("&#%d;", []rune(c)[0]) })
}
