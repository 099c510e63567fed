package yamldoc

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Path leads from a document's root to a value, by keys and indices in the form "[0]".
type Path []string

// Add is the path of a value below; p stays.
func (p Path) Add(steps ...string) Path { return append(p[:len(p):len(p)], steps...) }

// Index is the path of an item; p stays.
func (p Path) Index(i int) Path { return p.Add(step(i)) }

func step(i int) string { return "[" + strconv.Itoa(i) + "]" }

// ParsePath reads a.b[0].c, the form of sigs.k8s.io/json.
func ParsePath(s string) Path { return strings.Split(strings.ReplaceAll(s, "[", ".["), ".") }

var (
	index    = lazy.Regexp(`^\[[0-9]+\]$`)
	plainKey = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)
)

// String is a.b[0].c, with keys that hold other characters in brackets: metadata.labels["a.b/c"].
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case index().MatchString(step):
			b.WriteString(step)
		case !plainKey().MatchString(step):
			b.WriteString("[" + strconv.Quote(step) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// Kind is what a value is.
type Kind uint8

// The kinds of values. Invalid is what ParseStrict refused.
const (
	Invalid Kind = iota
	Null
	Bool
	Int
	Float
	String
	List
	Map
)

// KindOf is what n is by YAML 1.2; a date of YAML 1.1 is a string. n is no alias.
func KindOf(n *yaml.Node) Kind {
	switch n.Kind {
	case yaml.MappingNode:
		return Map
	case yaml.SequenceNode:
		return List
	case yaml.ScalarNode:
	default:
		return Invalid
	}
	switch n.ShortTag() {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int":
		return Int
	case "!!float":
		return Float
	}
	return String
}

// MergeTag is the tag of the key <<.
const MergeTag = "!!merge"

// Target is the node that an alias stands for, and any other itself.
func Target(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Field is the value at some keys, nil where n has none. Aliases and merge keys are followed.
func Field(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		n, _ = child(Target(n), key)
	}
	return n
}

// At follows a path as far as n has it. It returns the value there, nil where the path leads further, and the line of
// the last step: of the key for a field.
func At(n *yaml.Node, path Path) (value *yaml.Node, line int) {
	line = n.Line
	for _, step := range path {
		next, at := child(Target(n), step)
		if next == nil {
			return nil, line
		}
		n, line = next, at
	}
	return n, line
}

// Nearest is the value at a path, or the nearest around it.
func Nearest(n *yaml.Node, path Path) *yaml.Node {
	for i := len(path); ; i-- {
		if found, _ := At(n, path[:i]); found != nil {
			return found
		}
	}
}

// named is the item of a list whose field name says so, as in containers[worker].
func named(list *yaml.Node, name string) (*yaml.Node, int) {
	for _, item := range list.Content {
		if value := Field(item, "name"); value != nil && value.Value == name {
			return item, item.Line
		}
	}
	return nil, 0
}

// child follows one step, "name", "[0]" or "[name]", and gives the line it stands on.
func child(n *yaml.Node, step string) (*yaml.Node, int) {
	if n == nil {
		return nil, 0
	}
	switch n.Kind {
	case yaml.SequenceNode:
		i, err := strconv.Atoi(strings.Trim(step, "[]"))
		if err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
		if err != nil {
			return named(n, strings.Trim(step, "[]"))
		}
	case yaml.MappingNode:
		if found, line := own(n, step); found != nil {
			return found, line
		}
		return merged(n, step, map[*yaml.Node]bool{n: true})
	}
	return nil, 0
}

// own is a field of a mapping, and the line of its key.
func own(n *yaml.Node, key string) (*yaml.Node, int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], n.Content[i].Line
		}
	}
	return nil, 0
}

// merged is own for what a mapping takes from others by the key <<. Each of them is searched once: a mapping may merge
// itself, and mappings that merge many others are as many lookups as there are ways between them otherwise.
func merged(n *yaml.Node, key string, seen map[*yaml.Node]bool) (*yaml.Node, int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag != MergeTag {
			continue
		}
		from := []*yaml.Node{n.Content[i+1]}
		if list := Target(from[0]); list.Kind == yaml.SequenceNode {
			from = list.Content
		}
		for _, other := range from {
			other = Target(other)
			if other.Kind != yaml.MappingNode || seen[other] {
				continue
			}
			seen[other] = true
			if found, line := own(other, key); found != nil {
				return found, line
			}
			if found, line := merged(other, key, seen); found != nil {
				return found, line
			}
		}
	}
	return nil, 0
}
