package schema

import (
	"regexp"
	"strconv"
	"strings"
)

// place is where in a document something stands. It is a list towards the root, since most places are never printed.
type place struct {
	parent *place
	name   string // of a field
	item   bool
	index  int // of an item
}

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

// find returns the position of the deepest part of a dotted path that the document has: of the value where the whole
// path is there, of the parent's key where a field is missing.
func (n *node) find(dotted string) position {
	at := n.at
	for dotted != "" {
		var name string
		if strings.HasPrefix(dotted, "[") {
			var text string
			text, dotted, _ = strings.Cut(dotted[1:], "]")
			dotted = strings.TrimPrefix(dotted, ".")
			if i, err := strconv.Atoi(text); err == nil {
				if i >= len(n.items) {
					return at
				}
				n = n.items[i]
				at = n.at
				continue
			}
			name, _ = strconv.Unquote(text)
		} else {
			end := strings.IndexAny(dotted, ".[")
			if end < 0 {
				end = len(dotted)
			}
			name, dotted = dotted[:end], strings.TrimPrefix(dotted[end:], ".")
		}
		child := n.entry(name)
		if child == nil || child.at.line == 0 { // a default was written by nobody
			return at
		}
		n, at = child.value, child.at
		if dotted == "" {
			return n.at
		}
	}
	return at
}

// findKey is find, but returns the position of the last part's key.
func (n *node) findKey(mapping, key string) position {
	for _, name := range strings.Split(mapping, ".") {
		if n = n.field(name); n == nil {
			return position{}
		}
	}
	if e := n.entry(key); e != nil {
		return e.at
	}
	return n.at
}

func (n *node) entry(name string) *entry {
	for i := range n.fields {
		if n.fields[i].key == name {
			return &n.fields[i]
		}
	}
	return nil
}
