package krm

import (
	"bytes"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// outline is a job without its spec: what selectors and names go by, at a third of the price of parsing all of it. It
// is false of a document that is no job or is not written as most are, a line for each key of the object at the left
// edge.
func outline(doc yamldoc.Document) (yamldoc.Document, bool) {
	kept := make([]byte, 0, 256)
	keep, job := true, false
	for line := range bytes.Lines(doc.Text) {
		switch line[0] {
		case ' ', '\t', '#', '\r', '\n', '-': // a list may begin at the edge too, and a marker stands there
		default:
			key, value, ok := bytes.Cut(line, []byte(":"))
			if !ok || len(value) == 0 || value[0] != ' ' && value[0] != '\n' && value[0] != '\r' {
				return doc, false
			}
			switch string(key) {
			case "kind":
				job = string(bytes.TrimSpace(value)) == names.KindTrainingJob
				keep = true
			case "apiVersion", "metadata":
				keep = true
			case "spec":
				keep = false
			default:
				return doc, false
			}
		}
		if keep {
			kept = append(kept, line...)
		}
	}
	if !job || bytes.IndexByte(kept, '*') >= 0 { // of an anchor that may stand in what was left out
		return doc, false
	}
	doc.Text = kept
	return doc, true
}

// outlines are sources with the outlines of their jobs, and whether there are any.
func outlines(sources []schema.Source) (short []schema.Source, some bool) {
	short = make([]schema.Source, len(sources))
	for i, src := range sources {
		docs := yamldoc.Split(src.Name, src.Data)
		for j, doc := range docs {
			var ok bool
			docs[j], ok = outline(doc)
			some = some || ok
		}
		short[i] = schema.Source{Name: src.Name, Data: joined(docs)}
	}
	return short, some
}
