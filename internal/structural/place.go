package structural

import (
	"strconv"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Place is where in a document something stands. It is a list towards the root, since most places are never printed.
type Place struct {
	parent *Place
	name   string // of a field
	item   bool
	index  int // of an item
}

// Key is the place of a field below p.
func (p *Place) Key(name string) *Place { return &Place{parent: p, name: name} }

// At is the place of an item below p.
func (p *Place) At(i int) *Place { return &Place{parent: p, item: true, index: i} }

var plainKey = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// String returns a.b[0].c, with keys that hold other characters in brackets: metadata.labels["a.b/c"].
func (p *Place) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.item:
		return before + "[" + strconv.Itoa(p.index) + "]"
	case !plainKey().MatchString(p.name):
		return before + "[" + strconv.Quote(p.name) + "]"
	case before == "":
		return p.name
	default:
		return before + "." + p.name
	}
}
