package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Input is a digest of what the author wrote: the job's metadata and spec as they reach tegen, and the spec of the
// Environment that is merged into them. Defaults, comments, the order of fields, and what tools write into metadata do
// not change it. Two renderings of one Input differ only where the programs differ that made them.
func (j *Job) Input() string { return j.input }

// WithoutInput forgets the digest, for renderings that are only compared: two documents may mean the same.
func (j *Job) WithoutInput() *Job {
	j.input = ""
	return j
}

// AddInput makes something else that the author wrote part of Input. Nothing leaves it as it is.
func (j *Job) AddInput(more ...string) {
	if len(more) > 0 {
		j.input = digest([]byte(j.input + "\n" + strings.Join(more, "\n")))
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// inputOf is the digest of a job's document, before anything is merged into it.
func inputOf(job *structural.Node, env *Environment) string {
	text := canonical(nil, ofAuthor(job))
	if env != nil {
		text = append(append(text, '\n'), env.written...)
	}
	return digest(text)
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
