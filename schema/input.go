package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
)

// inputOf is the digest of a job's document, before anything is merged into it.
func inputOf(j *structural.Node, env *environment.Environment) string {
	text := canonical(nil, ofAuthor(j))
	if env != nil {
		text = append(append(text, '\n'), env.Written...)
	}
	return job.Digest(text)
}

// writtenSpec is the spec of an Environment, in a canonical form.
func writtenSpec(env *structural.Node) []byte {
	if spec := env.Field("spec"); spec != nil {
		return canonical(nil, spec)
	}
	return nil
}

// ofAuthor is a document without what tools write.
func ofAuthor(root *structural.Node) *structural.Node {
	out := &structural.Node{Kind: yamldoc.Map}
	if metadata := root.Field("metadata"); metadata != nil && metadata.Kind == yamldoc.Map {
		clean := &structural.Node{Kind: yamldoc.Map}
		for _, e := range metadata.Fields {
			if (e.Key == "annotations" || e.Key == "labels") && e.Value.Kind == yamldoc.Map {
				all := *e.Value
				all.Fields = slices.DeleteFunc(slices.Clone(all.Fields), func(e structural.Entry) bool {
					return ofTool(e.Key)
				})
				if e.Value = &all; len(all.Fields) == 0 {
					continue
				}
			}
			clean.Fields = append(clean.Fields, e)
		}
		out.Fields = append(out.Fields, structural.Entry{Key: "metadata", Value: clean})
	}
	if spec := root.Field("spec"); spec != nil {
		out.Fields = append(out.Fields, structural.Entry{Key: "spec", Value: spec})
	}
	return out
}

// canonical is AppendJSON with the fields of each mapping in the order of their names.
func canonical(b []byte, n *structural.Node) []byte {
	switch n.Kind {
	case yamldoc.Map:
		fields := slices.Clone(n.Fields)
		slices.SortFunc(fields, func(a, b structural.Entry) int { return strings.Compare(a.Key, b.Key) })
		b = append(b, '{')
		for _, e := range fields {
			key := structural.Node{Kind: yamldoc.String, Text: e.Key}
			b = append(canonical(append(key.AppendJSON(b), ':'), e.Value), ',')
		}
		return append(b, '}')
	case yamldoc.List:
		b = append(b, '[')
		for _, item := range n.Items {
			b = append(canonical(b, item), ',')
		}
		return append(b, ']')
	}
	return n.AppendJSON(b)
}
