package manifest

import "bytes"

// document is one YAML document of a stream.
type document struct {
	name string // of the stream, for errors
	line int    // of the document's first byte, from 1
	text []byte
	// loose: fields that the Go types do not have are left out
	loose bool
}

// splitDocuments cuts a stream at its "---" and "..." lines. No scalar may
// hold such a line at the left edge, so looking at line starts is enough. A
// document keeps the marker and the comments above it, so that what stands on
// the marker's line is read too.
func splitDocuments(name string, data []byte) []document {
	var docs []document
	start, startLine, line := 0, 1, 0
	// begun: the document has a marker or content, so a marker ends it.
	begun := false
	cut := func(at, nextLine int) {
		docs = append(docs, document{name: name, line: startLine, text: data[start:at]})
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
		begun = begun || startsContent(text)
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

func hasMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || isBlank(rest[0]) || rest[0] == '\r')
}

// startsContent: comments and %directives stand ahead of their document's
// marker without being a document of their own.
func startsContent(line []byte) bool {
	if len(line) > 0 && line[0] == '%' {
		return false
	}
	line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\ufeff")), " \t\r")
	return len(line) > 0 && line[0] != '#'
}
