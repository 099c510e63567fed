package importer

import (
	"strings"
)

// shellToken is a word of the text that a shell reads, or what stands between two commands.
type shellToken struct {
	from, to int
	text     string // a word without its quotes
	opens    bool   // the shell has yet to put something into it
	ends     bool   // no word: a command ends here
}

// shellScanner cuts such a text into words as a POSIX shell would. It understands quotes, comments, continued lines and
// here-documents; what stands in $(…) and in backticks it passes over as a part of a word.
type shellScanner struct {
	text   string
	at     int
	tokens []shellToken
	until  []string // the words that end the here-documents of this line
	data   []string // the here-documents
}

// scanShell says of a text that it does not understand so: a quote that nobody closes, for one.
func scanShell(text string) (s *shellScanner, ok bool) {
	s = &shellScanner{text: text}
	for s.at < len(text) {
		rest := text[s.at:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "\\\n"):
			s.at += 2
		case strings.IndexByte(" \t\r", c) >= 0:
			s.at++
		case c == '#':
			s.at += len(upTo(rest, "\n"))
		case c == '\n':
			s.end(1)
			s.documents()
		case strings.HasPrefix(rest, "<<<"):
			s.end(3)
		case strings.HasPrefix(rest, "<<"):
			s.end(2)
			s.document()
		case strings.IndexByte(";&|()<>", c) >= 0:
			s.end(1)
		default:
			if !s.word() {
				return s, false
			}
		}
	}
	return s, true
}

// upTo is a text up to a mark, or all of it.
func upTo(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return before
}

func (s *shellScanner) end(n int) {
	s.tokens = append(s.tokens, shellToken{from: s.at, to: s.at + n, ends: true})
	s.at += n
}

// document reads the word that will end a here-document.
func (s *shellScanner) document() {
	rest := strings.TrimLeft(strings.TrimPrefix(s.text[s.at:], "-"), " \t")
	s.at = len(s.text) - len(rest)
	if known := len(s.tokens); s.at < len(s.text) && s.word() && len(s.tokens) > known {
		s.until = append(s.until, s.tokens[known].text)
		s.tokens = s.tokens[:known]
	}
}

// documents passes over the here-documents that start on this line.
func (s *shellScanner) documents() {
	for _, until := range s.until {
		from := s.at
		for s.at < len(s.text) {
			line := upTo(s.text[s.at:], "\n")
			s.at = min(s.at+len(line)+1, len(s.text))
			if strings.TrimLeft(line, "\t") == until {
				break
			}
		}
		s.data = append(s.data, s.text[from:s.at])
	}
	s.until = nil
}

// word reads one word, and says whether its quotes are closed.
func (s *shellScanner) word() bool {
	t := shellToken{from: s.at}
	var b strings.Builder
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n;&|()<>", s.text[s.at]) < 0 {
		n, text, opens := wordPart(s.text[s.at:])
		if n == 0 {
			return false
		}
		b.WriteString(text)
		t.opens = t.opens || opens
		s.at += n
	}
	t.to, t.text = s.at, b.String()
	if t.to > t.from {
		s.tokens = append(s.tokens, t)
	}
	return true
}

// wordPart is the length of the next part of a word, its text, and whether the shell has yet to put something there.
// The length is 0 where its end is missing.
func wordPart(rest string) (n int, text string, opens bool) {
	switch rest[0] {
	case '\\':
		if n = min(2, len(rest)); rest[:n] == "\\\n" {
			return n, "", false
		}
		return n, rest[1:n], false
	case '\'':
		if n = strings.IndexByte(rest[1:], '\''); n < 0 {
			return 0, "", false
		}
		return n + 2, rest[1 : n+1], false
	case '"':
		return quotedPart(rest)
	case '`', '$':
		n = expansion(rest)
		return n, rest[:n], true
	}
	return 1, rest[:1], false
}

// quotedPart is wordPart for a text in double quotes.
func quotedPart(rest string) (n int, text string, opens bool) {
	var b strings.Builder
	for i := 1; i < len(rest); {
		switch c := rest[i]; {
		case c == '"':
			return i + 1, b.String(), opens
		case c == '\\' && i+1 < len(rest):
			next := rest[i+1]
			if strings.IndexByte("$`\"\\\n", next) < 0 {
				b.WriteByte(c)
			}
			if next != '\n' {
				b.WriteByte(next)
			}
			i += 2
		case c == '$' || c == '`':
			n := expansion(rest[i:])
			if n == 0 {
				return 0, "", true
			}
			b.WriteString(rest[i : i+n])
			opens = true
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return 0, "", opens
}

// expansion is the length of what the shell puts something in the place of, 0 where its end is missing: $NAME counts
// with its first letter, which is enough to see where a word ends.
func expansion(rest string) int {
	end := byte('`')
	switch {
	case strings.HasPrefix(rest, "$("):
		end = ')'
	case strings.HasPrefix(rest, "${"):
		end = '}'
	case rest[0] == '$':
		return 1
	}
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\':
			i++
		case c == end && (end == '`' || depth == 1):
			return i + 1
		case c == end:
			depth--
		case end != '`' && c == rest[1]:
			depth++
		case end != '`' && (c == '\'' && end == ')' || c == '"'):
			n, _, _ := wordPart(rest[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}
