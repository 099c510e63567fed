package importer

import (
	"encoding/json"
	"strings"
)

// maxShown is how many characters of a value a note shows.
const maxShown = 60

// summary is a value as one short line of JSON.
func summary(value any) string { return window(line(value), 0) }

// summaries are two values that differ, each shown so far that the difference is seen.
func summaries(a, b any) (string, string) {
	first, second := line(a), line(b)
	same := 0
	for same < min(len(first), len(second)) && first[same] == second[same] {
		same++
	}
	if same < maxShown-1 {
		return window(first, 0), window(second, 0)
	}
	from := same - maxShown/3
	return window(first, from), window(second, from)
}

// window is a part of a line, with a mark on each side where there is more.
func window(text []rune, from int) string {
	before, after := "", ""
	if from > 0 {
		before, text = "…", text[from:]
	}
	if len(text) > maxShown-len([]rune(before)) {
		after, text = "…", text[:maxShown-1-len([]rune(before))]
	}
	return before + string(text) + after
}

// line is a value as one line of JSON, without what is secret in it.
func line(value any) []rune {
	if value == nil {
		return nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(redactSecrets(value)) != nil {
		return nil
	}
	return []rune(strings.TrimSuffix(b.String(), "\n"))
}
