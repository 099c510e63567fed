package krm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// list is a ResourceList: what kustomize and kpt hand a function and take back. Items are nodes as they were parsed, so
// that comments and styles of those that pass through come out as they went in.
type list struct {
	version         string
	items           []*yaml.Node
	config, results *yaml.Node
	answered        []byte   // in the place of results: a list as YAML
	notes           []string // about the function itself
	generators      generators.Set
}

// readList parses a ResourceList, and refuses what would otherwise be left out without a word: a second document,
// items that are no objects.
func readList(in []byte) (*list, error) {
	if wrong := yamldoc.CheckCount("standard input", in); wrong != nil {
		return nil, fmt.Errorf("line %d: %s", wrong.Line, wrong.Msg)
	}
	root, err := onlyDocument(bytes.ReplaceAll(yamldoc.JoinSurrogates(in), []byte("\r\n"), []byte("\n")))
	if err != nil {
		return nil, err
	}
	if root == nil || root.Kind != yaml.MappingNode || textOf(yamldoc.Field(root, "kind")) != "ResourceList" {
		return nil, errors.New("standard input holds no ResourceList; 'tegen render FILE' renders a file")
	}
	l := &list{version: textOf(yamldoc.Field(root, "apiVersion"))}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		if seen[key] {
			return nil, fmt.Errorf("line %d: %s is there twice", root.Content[i].Line, key)
		}
		seen[key] = true
		switch key {
		case "apiVersion", "kind":
		case "items":
			if l.items, err = itemsOf(value); err != nil {
				return nil, err
			}
		case "functionConfig":
			if isNull(value) {
				break
			}
			if err := checkObject(value, key); err != nil {
				return nil, err
			}
			if err := selfContained(value, key); err != nil {
				return nil, err
			}
			l.config = value
		case "results":
			if err := selfContained(value, key); err != nil {
				return nil, err
			}
			l.results = value
		default:
			return nil, fmt.Errorf("line %d: %s: a ResourceList has apiVersion, kind, items, functionConfig and "+
				"results, and nothing else",
				root.Content[i].Line, key)
		}
	}
	return l, nil
}

// onlyDocument is the content of a stream of one document, nil of one that is empty.
func onlyDocument(in []byte) (*yaml.Node, error) {
	var only *yaml.Node
	for _, doc := range yamldoc.Split("standard input", in) {
		root, err := parse(doc)
		switch {
		case err != nil:
			return nil, err
		case isNull(root):
		case only != nil:
			return nil, fmt.Errorf("line %d: a second document: a function is handed one ResourceList", root.Line)
		default:
			only = root
		}
	}
	return only, nil
}

// filled are the documents of a text that are more than comments.
func filled(text []byte) (docs []*yaml.Node, err error) {
	for _, doc := range yamldoc.Split("", text) {
		root, err := parse(doc)
		if err != nil {
			return nil, err
		}
		if !isNull(root) {
			docs = append(docs, root)
		}
	}
	return docs, nil
}

// parse names the line of an error, and leaves the name of the file to its caller.
func parse(doc yamldoc.Document) (*yaml.Node, error) {
	root, err := doc.Parse()
	var at *yamldoc.Error
	if errors.As(err, &at) {
		return nil, fmt.Errorf("line %d: %s", at.Line, at.Msg)
	}
	return root, err
}

func itemsOf(value *yaml.Node) ([]*yaml.Node, error) {
	if isNull(value) {
		return nil, nil
	}
	if value.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: items: must be a list of objects, not %s", value.Line, describe(value))
	}
	for i, item := range value.Content {
		path := fmt.Sprintf("items[%d]", i)
		if err := errors.Join(checkObject(item, path), selfContained(item, path)); err != nil {
			return nil, err
		}
	}
	return value.Content, nil
}

// checkObject checks the form of what tells objects apart. path is that of the object.
func checkObject(n *yaml.Node, path string) error {
	must := func(n *yaml.Node, kind yaml.Kind, path, what string) error {
		if isNull(n) || yamldoc.Target(n).Kind == kind {
			return nil
		}
		return fmt.Errorf("line %d: %s: must be %s, not %s", n.Line, path, what, describe(n))
	}
	if n.Kind != yaml.MappingNode { // null too, and an alias, whose object would be there twice
		return fmt.Errorf("line %d: %s: must be an object, not %s", n.Line, path, describe(n))
	}
	metadata := yamldoc.Field(n, "metadata")
	err := errors.Join(must(yamldoc.Field(n, "apiVersion"), yaml.ScalarNode, path+".apiVersion", "a text"),
		must(yamldoc.Field(n, "kind"), yaml.ScalarNode, path+".kind", "a text"),
		must(metadata, yaml.MappingNode, path+".metadata", "a mapping"),
		must(yamldoc.Field(metadata, "name"), yaml.ScalarNode, path+".metadata.name", "a text"),
		must(yamldoc.Field(metadata, "namespace"), yaml.ScalarNode, path+".metadata.namespace", "a text"))
	for _, name := range []string{"labels", "annotations"} {
		texts := yamldoc.Field(metadata, name)
		at := path + ".metadata." + name
		if wrong := must(texts, yaml.MappingNode, at, "a mapping"); wrong != nil || isNull(texts) {
			err = errors.Join(err, wrong)
			continue
		}
		texts = yamldoc.Target(texts)
		for i := 0; i+1 < len(texts.Content); i += 2 {
			err = errors.Join(err, must(texts.Content[i+1], yaml.ScalarNode, at+"."+texts.Content[i].Value, "a text"))
		}
	}
	return err
}

// selfContained refuses an alias of what stands outside of a part of the list. Parts are printed in another order than
// they are read, and some are left out: the alias would come before its anchor, or without one. path is that of the
// part.
func selfContained(part *yaml.Node, path string) error {
	anchors := map[*yaml.Node]bool{}
	var aliases []*yaml.Node
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		switch {
		case n.Kind == yaml.AliasNode:
			aliases = append(aliases, n)
		case n.Anchor != "":
			anchors[n] = true
		}
		for _, below := range n.Content {
			walk(below)
		}
	}
	walk(part)
	for _, n := range aliases {
		if !anchors[n.Alias] {
			return fmt.Errorf("line %d: *%s in %s is an alias of what is outside of it: write the value out", n.Line,
				n.Value, path)
		}
	}
	return nil
}

// formats are the annotations in which items say which file they belong to: kpt's of today, those of old, or both.
type formats struct{ internal, legacy bool }

// formats of the list's items are those of its answer: all of them for a list without items, none where no item has a
// file.
func (l *list) formats() formats {
	if len(l.items) == 0 {
		return formats{true, true}
	}
	var f formats
	for _, n := range l.items {
		a := annotations(n)
		has := func(keys ...string) bool {
			return slices.ContainsFunc(keys, func(k string) bool { return yamldoc.Field(a, k) != nil })
		}
		f.internal = f.internal || has(pathAnnotation, indexAnnotation, "internal.config.kubernetes.io/id")
		f.legacy = f.legacy || has(legacyPath, legacyIndex, "config.k8s.io/id")
	}
	return f
}

// write prints a list: its items, the bundles' objects after them, then the rest. The objects are text already, and
// indenting it costs a hundredth of parsing it into nodes and printing those.
func (l *list) write(w io.Writer, bundles []render.Bundle) error {
	out := bufio.NewWriterSize(w, 1<<16)
	more := slices.ContainsFunc(bundles, func(b render.Bundle) bool { return len(b.Files) > 0 })
	head := mapping(scalar("apiVersion"), scalar(l.version), scalar("kind"), scalar("ResourceList"))
	if len(l.items) == 0 && !more {
		head.Content = append(head.Content, scalar("items"), &yaml.Node{Kind: yaml.SequenceNode})
	}
	if err := encode(out, head); err != nil {
		return err
	}
	if len(l.items) > 0 || more {
		_, _ = out.WriteString("items:\n") // a writer with a buffer keeps its error until it is flushed
	}
	for some := range slices.Chunk(l.items, batch) {
		if err := encode(out, &yaml.Node{Kind: yaml.SequenceNode, Content: some}); err != nil {
			return err
		}
	}
	if err := writeObjects(out, bundles, l.formats()); err != nil {
		return err
	}
	if l.config != nil {
		if err := encode(out, mapping(scalar("functionConfig"), l.config)); err != nil {
			return err
		}
	}
	if l.answered != nil {
		_, _ = out.WriteString("results:\n")
		_, _ = out.Write(l.answered)
	} else if l.results != nil {
		if err := encode(out, mapping(scalar("results"), l.results)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// answer puts results in the place of those that the list had.
func (l *list) answer(results framework.Results) error {
	if len(results) == 0 {
		return nil
	}
	text, err := yaml.Marshal(results)
	if err != nil {
		return err
	}
	l.answered = text
	return nil
}

func encode(w io.Writer, n *yaml.Node) error {
	e := yaml.NewEncoder(w)
	if err := e.Encode(n); err != nil {
		return err
	}
	return e.Close()
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: content}
}

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
