package krm

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

const (
	localConfig     = "config.kubernetes.io/local-config"
	pathAnnotation  = "internal.config.kubernetes.io/path"
	indexAnnotation = "internal.config.kubernetes.io/index"
	legacyPath      = "config.kubernetes.io/path"
	legacyIndex     = "config.kubernetes.io/index"
)

// isNull says whether there is nothing, or a null.
func isNull(n *yaml.Node) bool {
	n = yamldoc.Target(n)
	return n == nil || yamldoc.KindOf(n) == yamldoc.Null
}

// textOf is a scalar's value, "" of anything else.
func textOf(n *yaml.Node) string {
	n = yamldoc.Target(n)
	if isNull(n) || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// describe is a node's kind in words.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias of another"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

func apiVersion(n *yaml.Node) string { return textOf(yamldoc.Field(n, "apiVersion")) }
func kind(n *yaml.Node) string       { return textOf(yamldoc.Field(n, "kind")) }
func name(n *yaml.Node) string       { return textOf(yamldoc.Field(n, "metadata", "name")) }
func namespace(n *yaml.Node) string  { return textOf(yamldoc.Field(n, "metadata", "namespace")) }
func label(n *yaml.Node, key string) string {
	return textOf(yamldoc.Field(n, "metadata", "labels", key))
}
func annotations(n *yaml.Node) *yaml.Node { return yamldoc.Field(n, "metadata", "annotations") }

// headOf is the head of an item.
func headOf(n *yaml.Node) dochead.Head {
	h := dochead.Head{APIVersion: apiVersion(n), Kind: kind(n)}
	h.Keys, h.Spec = keysOf(n), keysOf(yamldoc.Field(n, "spec"))
	return h
}

func keysOf(n *yaml.Node) (keys []string) {
	if n = yamldoc.Target(n); n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			keys = append(keys, n.Content[i].Value)
		}
	}
	return keys
}

// isInput reports whether the schema reads an item: a job, an Environment, and whatever dochead.Class takes for a
// mistake, which the schema then refuses. So is a Generator that nobody marked as local: it would configure nothing.
func isInput(n *yaml.Node) bool {
	switch headOf(n).Class() {
	case dochead.Foreign:
		return false
	case dochead.Config:
		return !isLocal(n)
	}
	return true
}

// isLocal says whether nothing applies an item. In an overlay the mark has the name that overlaidFS gave it.
func isLocal(n *yaml.Node) bool {
	return textOf(yamldoc.Field(annotations(n), localConfig)) == "true" ||
		textOf(yamldoc.Field(annotations(n), "internal."+localConfig)) == "true"
}

// markLocal keeps an item from being applied: no cluster has its kind.
func markLocal(n *yaml.Node) error {
	if err := yaml.NewRNode(n).PipeE(yaml.SetAnnotation(localConfig, "true")); err != nil {
		return fmt.Errorf("marking %s as local: %w", name(n), err)
	}
	return nil
}

// itemName is the file that an item came from, or what tells it from the others.
func itemName(n *yaml.Node, i int) string {
	path := yamldoc.Field(annotations(n), pathAnnotation)
	if path == nil {
		path = yamldoc.Field(annotations(n), legacyPath)
	}
	if file := textOf(path); file != "" {
		return file
	}
	if name(n) != "" && kind(n) != "" {
		return kind(n) + "/" + name(n)
	}
	return "items[" + strconv.Itoa(i) + "]"
}

// identity is what tells an object from every other.
func identity(n *yaml.Node) string {
	return strings.Join([]string{apiVersion(n), kind(n), namespace(n), name(n)}, " ")
}

// batch is how many objects one encoder prints. Each sets aside more memory than a hundred objects take, and keeps all
// that it has printed.
const batch = 64

// texts prints each node as a document.
func texts(nodes []*yaml.Node) ([]string, error) {
	out := make([]string, 0, len(nodes))
	for some := range slices.Chunk(nodes, batch) {
		var all bytes.Buffer
		e := yaml.NewEncoder(&all)
		for i, n := range some {
			if err := e.Encode(n); err != nil {
				return nil, fmt.Errorf("reading %s: %w", itemName(n, i), err)
			}
		}
		if err := e.Close(); err != nil {
			return nil, fmt.Errorf("reading items: %w", err)
		}
		docs := documents(all.Bytes())
		if len(docs) != len(some) { // a mapping's own text is indented wherever it could be a separator
			return nil, fmt.Errorf("reading items: %d became %d documents", len(some), len(docs))
		}
		for _, doc := range docs {
			out = append(out, string(doc))
		}
	}
	return out, nil
}
