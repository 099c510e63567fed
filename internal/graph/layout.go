package graph

import (
	"cmp"
	"slices"

	"github.com/tegen-dev/tegen/internal/refs"
)

// place puts each node into a column right of all that need it, and orders the columns so that lines cross little: each
// node goes to the middle of those that it has lines to, four times from left to right and back.
func (g *Graph) place() (boxes []box, width, height float64) {
	column := g.columns()
	var columns [][]int
	for i, c := range column {
		for len(columns) <= c {
			columns = append(columns, nil)
		}
		columns[c] = append(columns[c], i)
	}
	row := make([]float64, len(g.Nodes))
	number := func(c int) {
		for r, i := range columns[c] {
			row[i] = float64(r) - float64(len(columns[c]))/2
		}
	}
	for c := range columns {
		number(c)
	}
	near := g.neighbours()
	for range 4 {
		for _, order := range [][2]int{{0, 1}, {len(columns) - 1, -1}} {
			for n, c := 0, order[0]; n < len(columns); n, c = n+1, c+order[1] {
				wanted := make(map[int]float64, len(columns[c]))
				for _, i := range columns[c] {
					wanted[i] = middle(near[i], row, row[i])
				}
				slices.SortStableFunc(columns[c], func(a, b int) int {
					return cmp.Or(cmp.Compare(wanted[a], wanted[b]), cmp.Compare(a, b))
				})
				number(c)
			}
		}
	}
	return g.boxes(columns)
}

func (g *Graph) boxes(columns [][]int) (boxes []box, width, height float64) {
	boxes = make([]box, len(g.Nodes))
	most := 0
	for _, nodes := range columns {
		most = max(most, len(nodes))
	}
	x := margin
	for _, nodes := range columns {
		wide := 0.0
		for _, i := range nodes {
			n := g.Nodes[i]
			wide = max(wide, 2*margin+letter*float64(max(len(n.Kind), len(n.Name))))
		}
		y := header + float64(most-len(nodes))*(boxHeight+rowGap)/2
		for _, i := range nodes {
			boxes[i] = box{x: x, y: y, width: wide}
			y += boxHeight + rowGap
		}
		x += wide + columnGap
	}
	width = max(x-columnGap+columnGap/2, 2*margin+letter*float64(len(g.Title)), margin+float64(len(g.ways()))*legendGap)
	return boxes, width, header + float64(most)*(boxHeight+rowGap) + footer
}

// columns are those of the nodes: what nothing needs is in column 0. A line that would close a circle does not count.
func (g *Graph) columns() []int {
	needs := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		from, to := e.From, e.To
		if e.How == refs.Selects && g.Nodes[from].Kind == "Service" { // it is what they need, or others
			from, to = to, from
		}
		needs[from] = append(needs[from], to)
	}
	const unseen, open, done = 0, 1, 2
	state, column := make([]int, len(g.Nodes)), make([]int, len(g.Nodes))
	var order []int // each after all that it needs
	kept := make([][]int, len(g.Nodes))
	var visit func(int)
	visit = func(i int) {
		state[i] = open
		for _, to := range needs[i] {
			if state[to] == open {
				continue
			}
			kept[i] = append(kept[i], to)
			if state[to] == unseen {
				visit(to)
			}
		}
		state[i] = done
		order = append(order, i)
	}
	for i := range g.Nodes {
		if state[i] == unseen {
			visit(i)
		}
	}
	for _, i := range slices.Backward(order) {
		for _, to := range kept[i] {
			column[to] = max(column[to], column[i]+1)
		}
	}
	return column
}

func (g *Graph) neighbours() [][]int {
	near := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		near[e.From] = append(near[e.From], e.To)
		near[e.To] = append(near[e.To], e.From)
	}
	return near
}

// middle is the mean row of some nodes, or else what a node has.
func middle(nodes []int, row []float64, own float64) float64 {
	if len(nodes) == 0 {
		return own
	}
	sum := 0.0
	for _, i := range nodes {
		sum += row[i]
	}
	return sum / float64(len(nodes))
}
