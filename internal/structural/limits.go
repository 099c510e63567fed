package structural

import (
	"slices"
	"strconv"
	"strings"
)

// limits are what a definition asks of a list as a whole.
type limits struct {
	Least    int     `json:"least,omitempty"`
	Few      message `json:"few,omitzero"` // of a list with fewer items
	Most     int     `json:"most,omitempty"`
	Many     message `json:"many,omitzero"`     // of a list with more items
	Distinct bool    `json:"distinct,omitempty"` // of scalars: none is listed twice
}

// message is what is said of a value that a definition refuses, in place of what the value must be.
type message struct {
	Rule string `json:"rule"`
	Text string `json:"text"` // with {} for what is refused
}

// about is the text of a message about something.
func (m message) about(refused string) string { return strings.ReplaceAll(m.Text, "{}", refused) }

func (c *Checker) limits(n *Node, l *limits, p *Place) {
	count := len(n.Items)
	switch {
	case l == nil:
		return
	case count < l.Least:
		c.fail(n.At, p, l.Few.Rule, "%s", l.Few.about(strconv.Itoa(count)))
	case l.Most > 0 && count > l.Most:
		c.fail(n.At, p, l.Many.Rule, "%s", l.Many.about(strconv.Itoa(count)))
	}
	if !l.Distinct {
		return
	}
	var seen []value
	for i, item := range n.Items {
		v := value{item.Kind, item.Text}
		if slices.Contains(seen, v) {
			c.fail(item.At, p.At(i), "duplicate", "%s is listed twice", v.Text)
		}
		seen = append(seen, v)
	}
}
