package keys

import "unicode/utf8"

// nodeText is more than what a node has beside its key and value, as text and as a struct.
const nodeText = 256

// longestText is how many bytes JSON may write for one: \u0000.
const longestText = 6

// textSize is about how many bytes JSON takes for a string, and never less than it does.
func textSize(s string) (size int) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == '<' || c == '>' || c == '&':
			size += longestText
		case c == '"' || c == '\\':
			size += 2
		case c < utf8.RuneSelf:
			size++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				size += longestText
			} else {
				size += n
			}
			i += n - 1
		}
	}
	return size
}

// textSize is about how many bytes the event's JSON takes.
func (e *Event) textSize() int { return nodeText + e.Node.textSize() + e.Prev.textSize() }

func (n *Node) textSize() int {
	if n == nil {
		return 0
	}
	size := nodeText + textSize(n.Key)
	if n.Value != nil {
		size += textSize(*n.Value)
	}
	for _, c := range n.Nodes {
		size += c.textSize()
	}
	return size
}

// textSize is about how many bytes the error's JSON takes.
func (e *Error) textSize() int { return nodeText + textSize(e.Message) + textSize(e.Cause) }
