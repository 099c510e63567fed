package schema

import (
	"regexp"
	"strconv"
)

// place is where in a document something stands. It is a list towards the root, since most places are never printed.
type place struct {
	parent *place
	name   string // of a field
	item   bool
	index  int // of an item
}

// key is the place of a field below p.
func (p *place) key(name string) *place { return &place{parent: p, name: name} }

// at is the place of an item below p.
func (p *place) at(i int) *place { return &place{parent: p, item: true, index: i} }

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// String returns a.b[0].c, with keys that hold other characters in brackets: metadata.labels["a.b/c"].
func (p *place) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.item:
		return before + "[" + strconv.Itoa(p.index) + "]"
	case !plainKey.MatchString(p.name):
		return before + "[" + strconv.Quote(p.name) + "]"
	case before == "":
		return p.name
	default:
		return before + "." + p.name
	}
}
