package structural

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// plainWords are words that no shell reads otherwise, and YAML neither between brackets.
var plainWords = lazy.Regexp(`^[A-Za-z0-9_./=@+-]+( +[A-Za-z0-9_./=@+-]+)*$`)

// example ends the message about a value of another kind with how the same is written, where that is clear: a value in
// the first field that takes it, or in one that is required; the words of a line as a list.
func (s *Schema) example(n *Node) string {
	switch {
	case n.Kind == yamldoc.Map && s.Kind == yamldoc.List && s.Elem.Kind == yamldoc.Map:
		for _, f := range s.Elem.Fields {
			if f.required {
				return ": begin each item with '- " + f.Name + ": '"
			}
		}
		return ": begin each item with '- '"
	case n.Kind == yamldoc.Map || n.Kind == yamldoc.List || s.open:
		return ""
	case s.Kind == yamldoc.List && s.Elem.scalar != nil && s.Elem.scalar.kindFits(n.Kind) &&
		plainWords().MatchString(n.Text):
		return ": write " + FlowList(strings.Fields(n.Text))
	case s.Kind != yamldoc.Map:
		return ""
	}
	name, rank := "", 0
	for _, f := range s.Fields {
		if r := f.takes(n); r > rank {
			name, rank = f.Name, r
		}
	}
	switch {
	case name == "":
		return ""
	case n.Kind == yamldoc.String: // which may be what nobody should read
		return fmt.Sprintf(": write {%s: ...}", name)
	}
	return fmt.Sprintf(": write {%s: %s}", name, n.Text)
}

// takes says how likely a value was meant for a field: 3 where it must be there, 2 where the value is one of its words,
// 1 for a number in one that takes nothing else, 0 for not at all.
func (f *Field) takes(n *Node) int {
	s := f.Schema.scalar
	switch {
	case s == nil || !s.kindFits(n.Kind) || !s.allows(n):
		return 0
	case f.required:
		return 3
	case n.Kind == yamldoc.String && s.enum() != nil:
		return 2
	case n.Kind == yamldoc.Int && !s.kindFits(yamldoc.String):
		return 1
	}
	return 0
}

// FlowList is a list of words as one line of YAML, with quotes around what would be no string without.
func FlowList(words []string) string {
	items := make([]string, len(words))
	for i, word := range words {
		if items[i] = word; (&yaml.Node{Kind: yaml.ScalarNode, Value: word}).ShortTag() != "!!str" {
			items[i] = "'" + word + "'"
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}
