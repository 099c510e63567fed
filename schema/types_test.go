package schema

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// otherTypes are what a scalar is replaced by: its own text as another type, and a value of each other type.
func otherTypes(n *yaml.Node) (out []string) {
	kind := yamldoc.KindOf(n)
	if kind == yamldoc.String {
		return []string{"7", "7.5", "true", "[x]", "{x: y}"}
	}
	out = []string{fmt.Sprintf("%q", n.Value), "text", "[x]", "{x: y}"}
	if kind != yamldoc.Bool {
		out = append(out, "true")
	} else {
		out = append(out, "1")
	}
	if kind == yamldoc.Int {
		out = append(out, n.Value+".5", n.Value+".0")
	}
	return out
}

// typeName is the type of a value of otherTypes.
func typeName(text string) string {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return err.Error()
	}
	words := [...]string{"?", "null", "boolean", "integer", "number", "string", "list", "mapping"}
	return words[yamldoc.KindOf(doc.Content[0])]
}

// scalarAt is a scalar of a document with its path, without the numbers of items and the keys of authors.
type scalarAt struct {
	path string
	node *yaml.Node
	flow bool
}

func scalarsOf(n *yaml.Node, path string, flow bool) (all []scalarAt) {
	flow = flow || n.Style&yaml.FlowStyle != 0
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, scalarsOf(n.Content[i+1], path+"."+n.Content[i].Value, flow)...)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			all = append(all, scalarsOf(item, path+"[]", flow)...)
		}
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			all = append(all, scalarAt{strings.TrimPrefix(path, "."), n, flow})
		}
	}
	return all
}

// withValue is a text with another value in the place of a scalar in one line, nil where it is in several.
func withValue(text []byte, n *yaml.Node, value string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	line := []rune(string(lines[n.Line-1]))
	rest := string(line[n.Column-1:])
	for _, written := range []string{fmt.Sprintf("%q", n.Value), "'" + n.Value + "'", n.Value} {
		if after, ok := strings.CutPrefix(rest, written); ok {
			out := bytes.Join(lines[:n.Line-1], nil)
			out = append(out, string(line[:n.Column-1])+value+after...)
			return append(out, bytes.Join(lines[n.Line:], nil)...)
		}
	}
	return nil
}

// TestTypes: a value of another type is an error at the value, in brackets and in lines, or the field takes both types,
// as the table of docs/errors.md says.
func TestTypes(t *testing.T) {
	files, err := filepath.Glob("../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	accepted, seen := map[string][]string{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil || bytes.Contains(text, []byte("\n---\n")) {
			continue
		}
		for _, s := range scalarsOf(doc.Content[0], "", false) {
			for _, value := range otherTypes(s.node) {
				kind := typeName(value)
				what := fmt.Sprintf("%s %d %t %s", s.path, yamldoc.KindOf(s.node), s.flow, kind)
				changed := withValue(text, s.node, value)
				if seen[what] || changed == nil {
					continue
				}
				seen[what] = true
				if _, err := Load([]Source{{Name: "f.yaml", Data: changed}}); err == nil {
					accepted[s.path+" "+kind] = append(accepted[s.path+" "+kind], filepath.Base(file)+" "+value)
				}
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(accepted)) {
		if !slices.ContainsFunc(severalTypes, func(r *regexp.Regexp) bool { return r.MatchString(field) }) {
			t.Errorf("%s is accepted: %v", field, accepted[field])
		}
	}
	if len(seen) < 2000 {
		t.Errorf("only %d changes were tried", len(seen))
	}
}

// severalTypes are the fields, each with a type, that take values of several types; docs/errors.md lists them.
var severalTypes = []*regexp.Regexp{
	regexp.MustCompile(`^spec\.(.*\.)?resources\.((limits|requests)\.)?cpu (integer|number|string)$`),
	regexp.MustCompile(`^spec\.podTemplate\..*\.(limits|requests)\.[a-z-]+ (integer|number|string)$`),
	regexp.MustCompile(`^spec\.(groups\[\]\.)?failure\.restarts integer$`),
	regexp.MustCompile(`^spec\.workers\.processes integer$`),
}
