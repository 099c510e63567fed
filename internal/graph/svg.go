package graph

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/refs"
)

// Sizes of the picture in pixels. A letter is as wide as a wide one of a sans-serif font of 13 pixels.
const (
	letter, boxHeight = 8.0, 42.0
	margin, rowGap    = 12.0, 16.0
	columnGap         = 120.0
	header, footer    = 40.0, 34.0
	legendGap         = 100.0
)

// head works in a page of either colour, and tells the ways of refs.How apart by colour and by dash.
const head = `<style>
 svg { font: 13px sans-serif; } text { fill: #1f2328; } .kind { font-weight: 600; }
 .label { font-size: 11px; text-anchor: middle; } rect { fill: #f6f8fa; stroke: #818b98; rx: 6px; }
 .outside { stroke-dasharray: 4 3; } path { fill: none; stroke-width: 1.4; } marker path { fill: #818b98; }
 .uses { stroke: #818b98; } .dials { stroke: #2f81f7; } .named-by { stroke: #a371f7; } .joins { stroke: #d29922; }
 .selects { stroke: #3fb950; stroke-dasharray: 2 3; }
 @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } rect { fill: #151b23; stroke: #7d8590; } }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
	`<path d="M0 0L8 4L0 8z"/></marker></defs>
`

// box is where a node is.
type box struct{ x, y, width float64 }

// SVG is the graph as a picture: what has pods on the left, what it needs to the right.
func (g *Graph) SVG() string {
	boxes, width, height := g.place()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img">`+
		"\n<title>%s</title>\n", width, height, html.EscapeString(g.Title))
	b.WriteString(head)
	text(&b, "kind", margin, 24, g.Title)
	for _, e := range g.Edges {
		if e.How != refs.Selects || !g.has(e.To, e.From) { // a Service and the pods that it names: one line
			line(&b, e, boxes[e.From], boxes[e.To])
		}
	}
	for i, n := range g.Nodes {
		at, class := boxes[i], ""
		if n.Outside {
			class = "outside"
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.0f" y="%.0f" width="%.0f" height="%.0f"/>`+"\n", class, at.x, at.y,
			at.width, boxHeight)
		text(&b, "kind", at.x+margin, at.y+17, n.Kind)
		text(&b, "", at.x+margin, at.y+33, n.Name)
	}
	for i, how := range g.ways() {
		x := margin + float64(i)*legendGap
		fmt.Fprintf(&b, `<path class="%s" d="M%.0f %.0fh24"/>`+"\n", class(how), x, height-footer/2)
		text(&b, "", x+30, height-footer/2+4, string(how))
	}
	return b.String() + "</svg>\n"
}

func text(b *strings.Builder, class string, x, y float64, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.0f" y="%.0f">%s</text>`+"\n", class, x, y, html.EscapeString(s))
}

func class(how refs.How) string { return strings.ReplaceAll(string(how), " ", "-") }

// line goes from the side of one box to the near side of the other, and around a box of the same column. Its label is
// what a pointer over it shows; a port is written on it too.
func line(b *strings.Builder, e Edge, from, to box) {
	x1, x2 := from.x+from.width, to.x
	bend := columnGap / 2
	switch {
	case to.x < from.x:
		x1, x2, bend = from.x, to.x+to.width, -bend
	case to.x == from.x:
		x2 = to.x + to.width
	}
	y1, y2 := from.y+boxHeight/2, to.y+boxHeight/2
	end := x2 - bend
	if to.x == from.x {
		end = x2 + bend
	}
	fmt.Fprintf(b, `<path class="%s" marker-end="url(#arrow)" d="M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f">`+
		"<title>%s</title></path>\n", class(e.How), x1, y1, x1+bend, y1, end, y2, x2, y2, html.EscapeString(e.Label))
	if _, port, ok := strings.Cut(e.Label, ":"); ok {
		port, _, _ = strings.Cut(port, ",")
		text(b, "label", (x1+x2)/2, (y1+y2)/2-4, ":"+port)
	}
}

func (g *Graph) has(from, to int) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.From == from && e.To == to })
}

// ways are those of the edges, in the order of their constants.
func (g *Graph) ways() (all []refs.How) {
	for _, how := range []refs.How{refs.Uses, refs.Dials, refs.Named, refs.Selects, refs.Joins} {
		if slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.How == how }) {
			all = append(all, how)
		}
	}
	return all
}
