package keys

import (
	"encoding/json"
	"strconv"
	"time"
)

// object appends a JSON object field by field. Every answer and record is written with it: encoding/json, which the
// tests hold it to, takes several times as long. Texts that are empty are the caller's to leave out; flags and numbers
// leave themselves out.
type object struct {
	b        []byte
	hasField bool
}

func begin(b []byte) object { return object{b: append(b, '{')} }

func (o *object) end() []byte { return append(o.b, '}') }

// name begins a field.
func (o *object) name(s string) {
	if o.hasField {
		o.b = append(o.b, ',')
	}
	o.hasField = true
	o.b = append(append(append(o.b, '"'), s...), '"', ':')
}

func (o *object) text(name, s string) {
	o.name(name)
	o.b = appendText(o.b, s)
}

func (o *object) flag(name string, is bool) {
	if is {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) number(name string, n int64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, n, 10)
	}
}

func (o *object) index(name string, n uint64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

// appendText appends a string. encoding/json writes strings that need escaping.
func appendText(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&':
			text, err := json.Marshal(s)
			if err != nil { // a string always marshals
				panic(err)
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func (h *head) append(b []byte) []byte {
	o := begin(b)
	o.text("action", h.Action)
	o.text("key", h.Key)
	o.flag("refresh", h.Refresh)
	if len(h.Then) > 0 {
		o.name("then")
		for i := range h.Then {
			o.b = h.Then[i].append(append(o.b, separator(i, '[')))
		}
		o.b = append(o.b, ']')
	}
	return o.end()
}

// separator is what stands before an element of a list.
func separator(i int, first byte) byte {
	if i == 0 {
		return first
	}
	return ','
}

func (r *record) append(b []byte) []byte {
	o := begin(b)
	o.flag("dir", r.Dir)
	o.index("ttl", r.TTL)
	o.number("expiration", r.Expiration)
	o.number("at", int64(r.At))
	o.index("created", r.Created)
	o.index("modified", r.Modified)
	o.number("time", r.Time)
	return o.end()
}

func (e *Event) append(b []byte) []byte {
	o := begin(b)
	o.text("action", e.Action)
	if e.Node != nil {
		o.name("node")
		o.b = e.Node.append(o.b)
	}
	if e.Prev != nil {
		o.name("prevNode")
		o.b = e.Prev.append(o.b)
	}
	return o.end()
}

func (n *Node) append(b []byte) []byte {
	o := begin(b)
	n.fields(&o)
	if len(n.Nodes) > 0 {
		o.name("nodes")
		for i, c := range n.Nodes {
			o.b = c.append(append(o.b, separator(i, '[')))
		}
		o.b = append(o.b, ']')
	}
	n.indexes(&o)
	return o.end()
}

// fields writes those that come before the nodes in a directory.
func (n *Node) fields(o *object) {
	if n.Key != "" {
		o.text("key", n.Key)
	}
	if n.Value != nil {
		o.text("value", *n.Value)
	}
	o.flag("dir", n.Dir)
	if n.Expiration != nil { // maxTTL keeps the year below 10000
		o.name("expiration")
		o.b = append(n.Expiration.AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
	}
	o.number("ttl", n.TTL)
}

// indexes writes those that come after them.
func (n *Node) indexes(o *object) {
	o.index("modifiedIndex", n.ModifiedIndex)
	o.index("createdIndex", n.CreatedIndex)
}

func (e *Error) append(b []byte) []byte {
	o := begin(b)
	o.name("errorCode")
	o.b = strconv.AppendInt(o.b, int64(e.Code), 10)
	o.text("message", e.Message)
	if e.Cause != "" {
		o.text("cause", e.Cause)
	}
	o.name("index")
	o.b = strconv.AppendUint(o.b, e.Index, 10)
	return o.end()
}
