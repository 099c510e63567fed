package structural

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/finding"
)

// Error is one mistake in an author's file, the only kind of error that authors see from this package.
type Error struct {
	File      string // as it was named to Load
	Line, Col int    // 1-based; columns count characters
	Path      string // spec.storage[0].efs.fileSystem; empty where the text is not YAML
	Rule      string // a stable word for tools: required, unknown-field, type, format, one-of, …
	Msg       string // what is wrong and what would be right
	Readable  bool   // the value has the right form: rules about other values may read it
}

// At is where the mistake is.
func (e Error) At() Position { return Position{e.File, e.Line, e.Col} }

func (e Error) Error() string { return e.Finding().String() }

// Finding is the mistake as what machines read too.
func (e Error) Finding() finding.Finding {
	return finding.Finding{
		Rule: "job/" + e.Rule, Level: finding.Error, File: e.File, Line: e.Line, Column: e.Col, Field: e.Path,
		Message: e.Msg,
	}
}

// Errors are all mistakes of one run, sorted by file and position, one line each.
type Errors []Error

func (es Errors) Error() string { return es.Findings().Error() }

// Findings are the mistakes as what machines read too.
func (es Errors) Findings() finding.List {
	out := make(finding.List, len(es))
	for i, e := range es {
		out[i] = e.Finding()
	}
	return out
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
