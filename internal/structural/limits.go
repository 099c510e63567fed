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
	Many     message `json:"many,omitzero"`      // of a list with more items
	Distinct bool    `json:"distinct,omitempty"` // of scalars: none is listed twice
}

// message is what is said of a value that a definition refuses, in place of what the value must be.
type message struct {
	Rule string `json:"rule"`
	Text string `json:"text"` // with {} for what is refused
}

// about is a message about something.
func (m message) about(refused string) message {
	return message{m.Rule, strings.ReplaceAll(m.Text, "{}", refused)}
}

func (c *Checker) limits(n *Node, l *limits, p *Place) {
	if l == nil {
		return
	}
	switch count := len(n.Items); {
	case count < l.Least:
		c.refuse(n.At, p, l.Few.about(strconv.Itoa(count)))
	case l.Most > 0 && count > l.Most:
		c.refuse(n.At, p, l.Many.about(strconv.Itoa(count)))
	}
	var seen []value
	for i, item := range n.Items {
		v := value{item.Kind, item.Text}
		if l.Distinct && slices.Contains(seen, v) {
			c.refuse(item.At, p.At(i), message{"duplicate", v.Text + " is listed twice"})
		}
		seen = append(seen, v)
	}
}
