package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Loose is an object as it was written, with whatever fields it has.
type Loose struct {
	Object map[string]any // values as kubectl reads them, keys as they were written; integers are int64
	// Duplicates are keys that one mapping has twice; the last value counts.
	Duplicates []Duplicate

	doc  document
	root *yaml.Node   // nil where positions are unknown
	at   yamldoc.Path // of the object in its document
}

// Duplicate is a key that one mapping has twice.
type Duplicate struct {
	Path []string // of the second one
	Line int
	Same bool // both have the same value
}

// Line is that of the value at a path of the object, or of as much of the path as there is. An index is "[0]".
func (l *Loose) Line(steps []string) int {
	if l.root == nil {
		return l.doc.FirstLine()
	}
	_, line := yamldoc.At(l.root, l.at.Add(steps...))
	return line
}

// Text is the scalar at a path as it was written, without quotes: 1.10, where the value is 1.1. It is "" for anything
// else.
func (l *Loose) Text(steps []string) string {
	if l.root == nil {
		return ""
	}
	node, _ := yamldoc.At(l.root, l.at.Add(steps...))
	if node = yamldoc.Target(node); node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// Stream is the name under which the text was read.
func (l *Loose) Stream() string { return l.doc.Stream }

// Template is the file of a Helm chart that a document was made of, as Helm says in a comment before it; "" where none
// does.
func (l *Loose) Template() string {
	for line := range bytes.Lines(l.doc.Text) {
		text := strings.TrimSpace(string(line))
		if name, ok := strings.CutPrefix(text, "# Source: "); ok {
			return strings.TrimSpace(name)
		}
		if text != "" && text != "---" && text[0] != '#' {
			break
		}
	}
	return ""
}

// ReadLoosely parses a stream of YAML documents more leniently than Read: it accepts unknown kinds and fields, reports
// duplicate keys, and goes on behind a document that cannot be read. The items of lists of objects come one by one.
func ReadLoosely(name string, data []byte) (objects []*Loose, errs []error) {
	for _, doc := range documents(name, data, false) {
		found, wrong := doc.readLoosely()
		objects, errs = append(objects, found...), append(errs, wrong...)
	}
	return objects, errs
}

func (d document) readLoosely() ([]*Loose, []error) {
	text, err := d.json(d.JSON)
	if err != nil {
		return nil, []error{err}
	}
	if string(text) == "null" {
		return nil, nil
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		return nil, []error{d.errorAt(nil, errors.New("reading a document: want a mapping with apiVersion and kind"))}
	}
	whole := &Loose{Object: object, doc: d}
	if root, err := d.Parse(); err == nil && root != nil {
		whole.root = root
		whole.Duplicates = duplicates(whole.root, nil)
		keepKeys(whole.root, object)
	}
	return whole.items()
}

// items is the object itself, or what a list holds, less the items that are no objects.
func (l *Loose) items() (out []*Loose, errs []error) {
	kind, _ := l.Object["kind"].(string)
	version, _ := l.Object["apiVersion"].(string)
	if kind == "" || version == "" {
		what := "a document"
		if len(l.at) > 0 {
			what = l.at.String()
		}
		return nil, []error{l.doc.errorAt(l.at, fmt.Errorf("reading %s: apiVersion or kind is missing", what))}
	}
	list, isList := l.Object["items"].([]any)
	if !isList && kind == "List" {
		return nil, []error{l.doc.errorAt(l.at.Add("items"), errors.New("reading List: items: want a list"))}
	}
	if !isList {
		return []*Loose{l}, nil
	}
	for i, item := range list {
		object, ok := item.(map[string]any)
		at := l.at.Add("items").Index(i)
		if !ok {
			errs = append(errs, l.doc.errorAt(at, fmt.Errorf("reading %s: %s: want a mapping", kind, at)))
			continue
		}
		found, wrong := (&Loose{Object: object, doc: l.doc, root: l.root, at: at}).items()
		out, errs = append(out, found...), append(errs, wrong...)
	}
	if len(out) > 0 {
		out[0].Duplicates = l.Duplicates
	}
	return out, errs
}

// duplicates finds keys that one mapping has twice.
func duplicates(node *yaml.Node, at yamldoc.Path) (out []Duplicate) {
	if node.Kind == yaml.SequenceNode {
		for i, item := range node.Content {
			out = append(out, duplicates(item, at.Index(i))...)
		}
		return out
	}
	if node.Kind != yaml.MappingNode { // an alias was looked at where it is anchored
		return nil
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		here := at.Add(key.Value)
		if before := seen[key.Value]; before != nil {
			out = append(out, Duplicate{here, key.Line, sameNode(before, value)})
		}
		seen[key.Value] = value
		out = append(out, duplicates(value, here)...)
	}
	return out
}

// sameNode says whether two values are written alike.
func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, sameNode)
}

// keepKeys restores keys that YAML 1.1 does not take for text: it reads y as "true".
func keepKeys(node *yaml.Node, value any) {
	node = yamldoc.Target(node)
	switch x := value.(type) {
	case []any:
		for i := 0; node.Kind == yaml.SequenceNode && i < min(len(x), len(node.Content)); i++ {
			keepKeys(node.Content[i], x[i])
		}
	case map[string]any:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			key := yamldoc.Target(node.Content[i])
			if _, ok := x[key.Value]; !ok && key.Kind == yaml.ScalarNode && key.Style == 0 &&
				key.Tag != yamldoc.MergeTag {
				keepKey(x, key.Value)
			}
			keepKeys(node.Content[i+1], x[key.Value])
		}
	}
}

func keepKey(object map[string]any, written string) {
	var alone map[string]any
	if sigsyaml.Unmarshal([]byte(written+": 0"), &alone) != nil {
		return
	}
	for read := range alone {
		if value, ok := object[read]; ok {
			delete(object, read)
			object[written] = value
		}
	}
}
