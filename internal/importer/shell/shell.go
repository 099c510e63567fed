// Package shell cuts a text that a shell reads into words, as far as it takes to find the options of one program in it.
// A text goes in, words with their places come out, and a text that is not understood is said to be so.
package shell

import (
	"path"
	"slices"
	"strings"
)

// Token is a word of a text, or what stands between two commands.
type Token struct {
	From, To int
	Text     string // a word without its quotes
	Expands  bool   // the shell has yet to put something into it
	Ends     bool   // no word: a command ends here
}

// Text is a text as a POSIX shell would cut it into words. Quotes, comments, continued lines and here-documents are
// understood; what stands in $(…) and in backticks is a part of a word.
type Text struct {
	Tokens    []Token
	Documents []string // the here-documents

	text  string
	at    int
	until []string // the words that end the here-documents of this line
}

// Scan cuts a text into words. It is not ok where the text is not understood, such as one with a quote that nobody
// closes.
func Scan(text string) (s *Text, ok bool) {
	s = &Text{text: text}
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

func (s *Text) end(n int) {
	s.Tokens = append(s.Tokens, Token{From: s.at, To: s.at + n, Ends: true})
	s.at += n
}

// document reads the word that will end a here-document.
func (s *Text) document() {
	rest := strings.TrimLeft(strings.TrimPrefix(s.text[s.at:], "-"), " \t")
	s.at = len(s.text) - len(rest)
	if known := len(s.Tokens); s.at < len(s.text) && s.word() && len(s.Tokens) > known {
		s.until = append(s.until, s.Tokens[known].Text)
		s.Tokens = s.Tokens[:known]
	}
}

// documents passes over the here-documents that start on this line.
func (s *Text) documents() {
	for _, until := range s.until {
		from := s.at
		for s.at < len(s.text) {
			line := upTo(s.text[s.at:], "\n")
			s.at = min(s.at+len(line)+1, len(s.text))
			if strings.TrimLeft(line, "\t") == until {
				break
			}
		}
		s.Documents = append(s.Documents, s.text[from:s.at])
	}
	s.until = nil
}

// word reads one word, and says whether its quotes are closed.
func (s *Text) word() bool {
	t := Token{From: s.at}
	var b strings.Builder
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n;&|()<>", s.text[s.at]) < 0 {
		n, text, expands := wordPart(s.text[s.at:])
		if n == 0 {
			return false
		}
		b.WriteString(text)
		t.Expands = t.Expands || expands
		s.at += n
	}
	t.To, t.Text = s.at, b.String()
	if t.To > t.From {
		s.Tokens = append(s.Tokens, t)
	}
	return true
}

// wordPart is the length of the next part of a word, its text, and whether the shell has yet to put something there.
// The length is 0 where its end is missing.
func wordPart(rest string) (n int, text string, expands bool) {
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
func quotedPart(rest string) (n int, text string, expands bool) {
	var b strings.Builder
	for i := 1; i < len(rest); {
		switch c := rest[i]; {
		case c == '"':
			return i + 1, b.String(), expands
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
			expands = true
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return 0, "", expands
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

// TextIn is the index of the text in sh -c TEXT, -1 for other commands: those that a shell reads from a file.
func TextIn(words []string) int {
	if len(words) == 0 || !Is(words[0]) {
		return -1
	}
	reads := false // a text, which is the first word that is no option
	for i := 1; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--" && reads && i+1 < len(words):
			return i + 1
		case word == "--":
			return -1
		case word == "--rcfile" || word == "--init-file":
			i++
		case strings.HasPrefix(word, "--"):
		case strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+"):
			reads = reads || word[0] == '-' && strings.Contains(word, "c")
			if strings.HasSuffix(word, "o") || strings.HasSuffix(word, "O") { // what it sets has a word of its own
				i++
			}
		case reads:
			return i
		default:
			return -1
		}
	}
	return -1
}

// Is says whether a word is the name of a shell.
func Is(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash"}, path.Base(word))
}
