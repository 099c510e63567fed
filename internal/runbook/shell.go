package runbook

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// command is what one line of a block does: programs, each with its words, of which one reads what the one before it
// printed; or a text for a shell, as it is in our own tables.
type command struct {
	comment string
	pipe    [][]string
	text    string
}

// text adds a paragraph, whose lines are no longer than those of a document.
func (s *section) text(format string, args ...any) {
	s.parts = append(s.parts, part{text: wrap(fmt.Sprintf(format, args...))})
}

// run adds a command to the block, or starts one below a paragraph.
func (s *section) run(words ...string) { s.add(command{pipe: [][]string{words}}) }

// pipe adds a command whose programs read from each other.
func (s *section) pipe(programs ...[]string) { s.add(command{pipe: programs}) }

// shell adds a text for a shell.
func (s *section) shell(text string) { s.add(command{text: text}) }

// comment adds a line that no shell reads.
func (s *section) comment(format string, args ...any) {
	s.add(command{comment: fmt.Sprintf(format, args...)})
}

func (s *section) add(c command) {
	if n := len(s.parts); n == 0 || s.parts[n-1].text != "" {
		s.parts = append(s.parts, part{})
	}
	last := &s.parts[len(s.parts)-1]
	last.commands = append(last.commands, c)
}

func (p *part) append(out []byte) []byte {
	if p.text != "" {
		return fmt.Appendf(out, "\n%s\n", p.text)
	}
	out = append(out, "\n```sh\n"...)
	for _, c := range p.commands {
		out = append(out, c.line()+"\n"...)
	}
	return append(out, "```\n"...)
}

func (c *command) line() string {
	switch {
	case c.comment != "":
		return "# " + c.comment
	case c.text != "":
		return c.text
	}
	programs := make([]string, len(c.pipe))
	for i, words := range c.pipe {
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = quote(word)
		}
		programs[i] = strings.Join(quoted, " ")
	}
	return strings.Join(programs, " | ")
}

// plain words mean themselves to every shell, in every place. Braces, tildes and an equals sign at the start do not.
var plain = lazy.Regexp(`^[A-Za-z0-9_%+,./:@-][A-Za-z0-9_%+,./:@=-]*$`)

// quote is a word as a shell has to be given it.
func quote(word string) string {
	if plain().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// file is the name of a file as an argument: one that starts like an option would be taken for one.
func file(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// code is a text among words of Markdown, that shows it as it is.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// width of a line of text.
const width = 116

// wrap breaks a paragraph into lines. What is between backticks stays together, or a break would become a part of it.
func wrap(text string) string {
	var out strings.Builder
	column := 0
	for i, word := range words(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			out.WriteString("\n")
			column = 0
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}

// words cuts a text at its spaces but those between backticks.
func words(text string) (all []string) {
	inCode, from := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '`':
			inCode = !inCode
		case text[i] == ' ' && !inCode:
			all = append(all, text[from:i])
			from = i + 1
		}
	}
	return append(all, text[from:])
}
