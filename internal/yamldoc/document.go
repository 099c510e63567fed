// Package yamldoc reads YAML streams whose values keep their positions.
//
// Input: the name and the bytes of a stream.
// Output: its documents; of each the nodes with lines of the stream, its content as JSON, or an [Error].
// Invariant: one broken document hides no other, no input panics, and ParseStrict accepts only what every parser of
// YAML 1.1 and 1.2 reads alike.
package yamldoc

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one document of a stream.
type Document struct {
	Stream string // its name, for errors
	Line   int    // of the document's first byte, from 1
	Text   []byte

	Root *yaml.Node // in place of Text: the content of a document that was parsed already, and stays as it is
}

// Error is a mistake in a document.
type Error struct {
	Stream    string
	Line, Col int    // 1-based; columns count characters
	Path      Path   // empty where the text is not YAML
	Rule      string // a stable word for tools
	Msg       string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.Stream, e.Line, e.Col, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.Stream, e.Line, e.Col, e.Path, e.Msg)
}

// A document takes a parser some 100 microseconds and 5 KiB of memory, however short it is. A file of up to 8 MiB may
// have so many; a larger one has longer documents, as many objects of many jobs are.
const (
	mostDocuments  = 60_000
	shortDocuments = 140 // bytes, on average
)

// CheckCount returns an error if a stream has more documents than the limit for its size. Call it before Split, which
// keeps a Document for each.
func CheckCount(stream string, data []byte) *Error {
	most := max(mostDocuments, len(data)/shortDocuments)
	markers, line := 0, 0
	for text := range bytes.Lines(data) {
		line++
		if starts, ends := Marker(text); starts || ends {
			if markers++; markers > most {
				return Document{Stream: stream}.fail(line, 1, "size",
					fmt.Sprintf("the file has more documents than the limit of %d: split it", most))
			}
		}
	}
	return nil
}

// Split cuts a stream at its "---" and "..." lines. No scalar may hold such a line at the left edge, so looking at line
// starts is enough. A document keeps the marker and the comments above it, so that what stands on the marker's line is
// read too. The texts of all documents together are the stream.
func Split(stream string, data []byte) []Document {
	var docs []Document
	start, startLine, line := 0, 1, 0
	begun := false // the document has a marker or content, so a marker ends it
	cut := func(at, nextLine int) {
		docs = append(docs, Document{Stream: stream, Line: startLine, Text: data[start:at]})
		start, startLine, begun = at, nextLine, false
	}
	for pos := 0; pos < len(data); {
		line++
		text, next := data[pos:], len(data)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text, next = text[:i], pos+i+1
		}
		if hasMarker(text, "---") && begun {
			cut(pos, line)
		}
		begun = begun || StartsContent(text)
		if hasMarker(text, "...") {
			cut(next, line+1)
		}
		pos = next
	}
	if start < len(data) {
		cut(len(data), line)
	}
	return docs
}

// IsBlank says whether the document holds comments at most, and no marker.
func (d Document) IsBlank() bool {
	for line := range bytes.Lines(d.Text) {
		if StartsContent(line) && !hasMarker(bytes.TrimRight(line, "\n"), "...") {
			return false
		}
	}
	return true
}

// FirstLine is the line of the first content, past comments and the marker.
func (d Document) FirstLine() int {
	line := d.Line
	for text := range strings.Lines(string(d.Text)) {
		text = strings.TrimRight(text, "\r\n")
		if StartsContent([]byte(text)) && !hasMarker([]byte(text), "---") {
			return line
		}
		line++
	}
	return d.Line
}

func hasMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r')
}

// StartsContent says whether a line is more than a comment: comments and %directives stand ahead of their document's
// marker without being a document of their own.
func StartsContent(line []byte) bool {
	if len(line) > 0 && line[0] == '%' {
		return false
	}
	line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\ufeff")), " \t\r\n")
	return len(line) > 0 && line[0] != '#'
}

// Marker says whether a line of a stream begins a document, or ends one.
func Marker(line []byte) (starts, ends bool) {
	line = bytes.TrimRight(line, "\n")
	return hasMarker(line, "---"), hasMarker(line, "...")
}
