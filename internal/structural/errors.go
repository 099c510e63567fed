package structural

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one mistake in an author's file, the only kind of error that authors see from this package.
type Error struct {
	File      string // as it was named to Load
	Line, Col int    // 1-based; columns count characters
	Path      string // spec.storage[0].efs.fileSystem; empty where the text is not YAML
	Rule      string // a stable word for tools: required, unknown-field, type, format, one-of, …
	Msg       string // what is wrong and what would be right
}

// At is where the mistake is.
func (e Error) At() Position { return Position{e.File, e.Line, e.Col} }

func (e Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Col)
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Errors are all mistakes of one run, sorted by file and position, one line each.
type Errors []Error

func (es Errors) Error() string {
	const most = 1000 // nobody reads on
	var lines []string
	for _, e := range es[:min(len(es), most)] {
		lines = append(lines, e.Error())
	}
	if len(es) > most {
		lines = append(lines, fmt.Sprintf("%s: and %d more errors", es[most], len(es)-most-1))
	}
	return strings.Join(lines, "\n")
}

// inOneLine writes out what would break a message in two: a YAML tag may hold a line end.
var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Tidy sorts the mistakes and keeps each to its line.
func (es Errors) Tidy() {
	for i := range es {
		es[i].Msg = inOneLine.Replace(es[i].Msg)
	}
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Msg, b.Msg))
	})
}

// Suggest returns "; did you mean …?" for the candidate nearest to a mistyped word, or nothing where none is near.
func Suggest(word string, candidates []string) string {
	best := Nearest(word, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// Nearest returns the candidate that a mistyped word most likely is, "" for none.
func Nearest(word string, candidates []string) string {
	best, distance := "", len(word)/3+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d <= distance && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours between two words.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // no field or value is that long
		return 64
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
