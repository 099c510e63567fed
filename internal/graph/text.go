package graph

import (
	"fmt"
	"strings"
)

// DOT is the graph for Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n", dotString(g.Title))
	for i, n := range g.Nodes {
		style := ""
		if n.Outside {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s]\n", i, dotString(n.Kind+"\n"+n.Name), style)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s]\n", e.From, e.To, dotString(e.Label))
	}
	return b.String() + "}\n"
}

// dotString is a string of DOT: only a quote, a backslash at the end and a line's end mean something in one.
func dotString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Mermaid is the graph for Mermaid, which GitHub and GitLab draw from Markdown.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		class := ""
		if n.Outside {
			class = ":::outside"
		}
		fmt.Fprintf(&b, "  n%d[%s]%s\n", i, mermaidString(n.Kind+"\n"+n.Name), class)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  n%d -->|%s| n%d\n", e.From, mermaidString(e.Label), e.To)
	}
	return b.String() + "  classDef outside stroke-dasharray: 4 3\n"
}

// mermaidString is a quoted string of Mermaid, in which HTML means what it does elsewhere.
func mermaidString(s string) string {
	escape := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "#", "&#35;", "\n", "<br/>")
	return `"` + escape.Replace(s) + `"`
}
