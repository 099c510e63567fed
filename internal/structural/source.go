package structural

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// MaxFile is the most bytes of a source; it and the limits of yamldoc keep hostile input within bounded
// time and memory. A document is some kilobytes, a file of 4,000 of them some megabytes.
const (
	MaxFile  = 8 << 20
	maxCount = 20000 // documents of a file
)

// Source is one input: its name for messages, and its bytes, or the content of its one document where that was parsed
// already.
type Source struct {
	Name string
	Data []byte
	Root *yaml.Node

	// Environment is the name of the Environment that may be in it, AnyEnvironment for a file of nothing but one. Any
	// other Environment is a mistake, since it would change the jobs of everybody.
	Environment string
}

// AnyEnvironment is no name of an object.
const AnyEnvironment = "*"

// Document is one YAML document: its tree, as far as it could be read, and what could not.
type Document struct {
	Root *Node
	Errs Errors
}

// Split cuts a file into its documents.
func Split(src Source) ([]yamldoc.Document, Errors) {
	fail := func(line int, format string, args ...any) Errors {
		return Errors{{File: src.Name, Line: line, Col: 1, Rule: "size", Msg: fmt.Sprintf(format, args...)}}
	}
	if src.Root != nil {
		return []yamldoc.Document{{Stream: src.Name, Line: 1, Root: src.Root}}, nil
	}
	if len(src.Data) > MaxFile {
		return nil, fail(1, "the file has %d bytes, more than the limit of %d: split it", len(src.Data), MaxFile)
	}
	if err := yamldoc.CheckText(src.Name, src.Data); err != nil {
		return nil, Errors{read(err)}
	}
	docs := yamldoc.Split(src.Name, src.Data)
	if len(docs) > maxCount {
		return nil, fail(docs[maxCount].Line, "the file has %d documents, more than the limit of %d: split it",
			len(docs), maxCount)
	}
	return docs, nil
}

func read(e *yamldoc.Error) Error {
	return Error{File: e.Stream, Line: e.Line, Col: e.Col, Path: e.Path.String(), Rule: e.Rule, Msg: e.Msg}
}

// Parse reads one document. A document of comments only has neither root nor errors.
func Parse(text yamldoc.Document) (doc Document) {
	y, errs := text.ParseStrict()
	for _, e := range errs {
		doc.Errs = append(doc.Errs, read(e))
	}
	if y != nil {
		if root := newNode(text.Stream, y); root.Kind != yamldoc.Null && root.Kind != yamldoc.Invalid {
			doc.Root = root // what is left may hold further mistakes
		}
	}
	return doc
}
