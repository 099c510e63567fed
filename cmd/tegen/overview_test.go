package main

import (
	"fmt"
	"html"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/golden"
)

// overviewHead works in a page of either colour, as the pictures of tegen graph do.
const overviewHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 908 %d" role="img">
<title>One job becomes objects, which a reconciler applies</title>
<style>
 svg { font: 13px sans-serif; } text { fill: #1f2328; } .code { font: 12px monospace; }
 .head { font-weight: 600; font-size: 14px; } .small { font-size: 11px; fill: #59636e; }
 rect { fill: #f6f8fa; stroke: #818b98; rx: 6px; } path { fill: none; stroke: #2f81f7; stroke-width: 1.6; }
 marker path { fill: #2f81f7; stroke: none; }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; } rect { fill: #151b23; stroke: #7d8590; }
 }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" ` +
	`orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
`

// TestGoldenOverview holds the README's picture to its job and to what that becomes.
func TestGoldenOverview(t *testing.T) {
	atRoot(t)
	const fixture = "fixtures/valid/minimal.yaml"
	dir := filepath.Join(t.TempDir(), "rendered")
	if _, msg, code := tegen("", "render", fixture, "-o", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, msg)
	}
	job := strings.Split(strings.TrimSpace(withoutComments(content(t, fixture))), "\n")
	golden.Open(t, "docs").Compare(t, "overview.svg", []byte(overview(job, kindsOf(listing(t, dir)))))
}

// kindsOf are the kinds of a listing, less those that are for kustomize.
func kindsOf(listing string) (kinds []string) {
	for line := range strings.Lines(listing) {
		if f := strings.Fields(line); len(f) == 2 && f[1] != "Kustomization" {
			kinds = append(kinds, f[1])
		}
	}
	return kinds
}

// overview draws a job, its objects and who applies them, in three columns with an arrow between any two.
func overview(job, kinds []string) string {
	const top, line, row = 64, 17, 36
	height := max(top+len(job)*line, top+len(kinds)*row) + 20
	var b strings.Builder
	fmt.Fprintf(&b, overviewHead, height)
	text := func(class string, x, y int, s string) {
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(s))
	}
	box := func(x, y, width, height int) {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d"/>`+"\n", x, y, width, height)
	}
	middle := (top - 16 + height - 20) / 2
	arrow := func(from, to int, label string) {
		fmt.Fprintf(&b, `<path marker-end="url(#arrow)" d="M%d %dH%d"/>`+"\n", from, middle, to)
		text("small", from, middle-8, label)
	}
	text("head", 12, 22, "job.yaml")
	text("small", 12, 40, "one file, checked")
	box(12, top-16, 354, len(job)*line+16)
	for i, s := range job { // not every viewer keeps spaces
		bare := strings.TrimLeft(s, " ")
		text("code", 22+8*(len(s)-len(bare)), top+4+i*line, bare)
	}
	arrow(374, 456, "tegen render")
	text("head", 468, 22, "Kubernetes objects")
	text("small", 468, 40, "plain manifests, for git")
	for i, kind := range kinds {
		box(468, top-16+i*row, 180, row-8)
		text("", 480, top+3+i*row, kind)
	}
	arrow(656, 738, "commit")
	text("head", 750, 22, "your cluster")
	text("small", 750, 40, "applied by one of these")
	for i, who := range []string{"Argo CD", "Flux", "kubectl apply"} {
		y := middle - 18 + (i-1)*48
		box(750, y, 146, row)
		text("", 762, y+22, who)
	}
	return b.String() + "</svg>\n"
}
