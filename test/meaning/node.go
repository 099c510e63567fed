// Package meaning says what manifests of training jobs mean: for each group of pods that are alike what runs in them,
// how many there are, what they get and where they may be, and how the job begins, ends and is tried again. It is made
// to hold the output of tegen import against its input, and shares nothing with it: a mistake would have to be made
// twice.
//
// What it has no rule for is compared as it stands, so that nothing is passed over.
package meaning

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a mapping as it was read.
type object = map[string]any

// node is a value and where it stands.
type node struct {
	kind  string // of the object
	path  string
	value any
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (n node) at(keys ...string) node {
	for _, key := range keys {
		m, _ := n.value.(object)
		path := n.path + "." + key
		if !plainKey.MatchString(key) {
			path = n.path + "[" + strconv.Quote(key) + "]"
		}
		n = node{n.kind, strings.TrimPrefix(path, "."), m[key]}
	}
	return n
}

func (n node) items() []node {
	list, _ := n.value.([]any)
	out := make([]node, len(list))
	for i, item := range list {
		out[i] = node{n.kind, fmt.Sprintf("%s[%d]", n.path, i), item}
	}
	return out
}

func (n node) keys() []string {
	m, _ := n.value.(object)
	return slices.Sorted(maps.Keys(m))
}

func (n node) isSet() bool { return n.value != nil }

// text is a scalar, "" for anything else.
func (n node) text() string {
	switch n.value.(type) {
	case nil, object, []any:
		return ""
	}
	return fmt.Sprint(n.value)
}

func (n node) texts() (out []string) {
	for _, item := range n.items() {
		out = append(out, item.text())
	}
	return out
}

// number is an integer, or another where there is none.
func (n node) number(otherwise int) int {
	if i, err := strconv.Atoi(n.text()); err == nil {
		return i
	}
	return otherwise
}

// json is a value in one spelling.
func (n node) json() string {
	text, err := json.Marshal(n.value)
	if err != nil {
		return fmt.Sprint(n.value)
	}
	return string(text)
}

// leaves visits what is not a mapping, with its path below the node. Lists are one value each.
func (n node) leaves(visit func(below string, leaf node)) {
	var walk func(below string, at node)
	walk = func(below string, at node) {
		if m, ok := at.value.(object); ok && len(m) > 0 {
			for _, key := range at.keys() {
				walk(strings.TrimPrefix(below+"."+key, "."), at.at(key))
			}
			return
		}
		if at.value != nil {
			visit(below, at)
		}
	}
	walk("", n)
}

// documents are the objects of a stream; those of a List stand for it.
func documents(text string) (out []node) {
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var read yaml.Node
		var value object
		if dec.Decode(&read) != nil {
			return out
		}
		lastOfEach(&read)
		if read.Decode(&value) != nil {
			return out
		}
		root := node{fmt.Sprint(value["kind"]), "", value}
		if value["kind"] == "List" {
			for _, item := range root.at("items").items() {
				out = append(out, node{item.at("kind").text(), item.path, item.value})
			}
			continue
		}
		if value != nil {
			out = append(out, root)
		}
	}
}

// lastOfEach leaves the last of the keys that stand twice in a mapping, as kubectl's parser does.
func lastOfEach(n *yaml.Node) {
	seen := map[string]bool{}
	for i := len(n.Content) - 2; i >= 0 && n.Kind == yaml.MappingNode; i -= 2 {
		key := n.Content[i].Value
		if seen[key] {
			n.Content = slices.Delete(n.Content, i, i+2)
		}
		seen[key] = true
	}
	for _, child := range n.Content {
		lastOfEach(child)
	}
}

// Fact is one thing that is so of a job or of its pods.
type Fact struct {
	Value string
	Kind  string // of the object that says it
	Path  string // where, "" where it follows from the kind alone
}

// facts are known by what they are about.
type facts map[string]Fact

func (f facts) set(about string, value any, from node) {
	f[about] = Fact{fmt.Sprint(value), from.kind, from.path}
}

// rest sets what is left of a node: all leaves but those below some paths, and those that have the API's default.
func (f facts) rest(about string, n node, without []string, defaults map[string]string) {
	n.leaves(func(below string, leaf node) {
		for _, name := range without {
			if below == name || strings.HasPrefix(below, name+".") {
				return
			}
		}
		value := leaf.text()
		if _, isList := leaf.value.([]any); isList || value == "" {
			value = leaf.json()
		}
		if usual, ok := defaults[below]; ok && usual == value {
			return
		}
		f.set(about+below, value, leaf)
	})
}
