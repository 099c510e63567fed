package command

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// located gives findings about objects the places of these in the manifests: of the field, or of the nearest value
// around it. Their text for people stays without. The manifests are parsed again, since few are wrong.
func located(sources []schema.Source, list finding.List) finding.List {
	if len(list) == 0 {
		return nil
	}
	type root struct {
		file string
		node *yaml.Node
	}
	objects := map[string]root{}
	for _, src := range sources {
		for _, doc := range yamldoc.Split(src.Name, src.Data) {
			node, err := doc.Parse()
			if err != nil {
				continue // its reader says so
			}
			for _, object := range itemsOf(node) {
				if name := objectName(object); objects[name].node == nil { // the first of a name
					objects[name] = root{src.Name, object}
				}
			}
		}
	}
	out := make(finding.List, len(list))
	for i, f := range list {
		kind, name, _ := strings.Cut(f.Object, " ")
		kind, _, _ = strings.Cut(kind, ".") // without the group
		at := objects[kind+" "+name]
		if at.node == nil { // one without a namespace is of no other
			at = objects[kind+" "+strings.TrimPrefix(name, "default/")]
		}
		if at.node != nil {
			value := yamldoc.Nearest(at.node, yamldoc.ParsePath(f.Field))
			f.Text, f.File, f.Line, f.Column = f.String(), at.file, value.Line, value.Column
		}
		out[i] = f
	}
	return out
}

// itemsOf are the objects of a document: those of a List, or itself.
func itemsOf(node *yaml.Node) []*yaml.Node {
	if items := yamldoc.Field(node, "items"); items != nil && strings.HasSuffix(textAt(node, "kind"), "List") {
		return items.Content
	}
	return []*yaml.Node{node}
}

// objectName is an object as findings call it.
func objectName(node *yaml.Node) string {
	name := textAt(node, "metadata", "name")
	if name == "" {
		name = textAt(node, "metadata", "generateName") + "*"
	}
	if namespace := textAt(node, "metadata", "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return textAt(node, "kind") + " " + name
}

func textAt(node *yaml.Node, path ...string) string {
	if value := yamldoc.Field(node, path...); value != nil {
		return value.Value
	}
	return ""
}
