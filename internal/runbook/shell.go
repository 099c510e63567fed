package runbook

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// plain words mean themselves to every shell, in every place. Braces, tildes and an equals sign at the start do not.
var plain = lazy.Regexp(`^[A-Za-z0-9_%+,./:@-][A-Za-z0-9_%+,./:@=-]*$`)

// quote is a word as a shell has to be given it.
func quote(word string) string {
	if plain().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// quoted are words, one or a list of them, as a shell has to be given them.
func quoted(words any) string {
	list, isList := words.([]string)
	if !isList {
		return quote(words.(string))
	}
	all := make([]string, len(list))
	for i, word := range list {
		all[i] = quote(word)
	}
	return strings.Join(all, " ")
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
