package manifest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type style int

const (
	plain style = iota
	quoted
	literal
)

// appendString prints s as the value of a line, without the line's end. A
// block scalar puts its lines at indent.
func appendString(dst []byte, s string, indent int) []byte {
	if isName(s) {
		return append(dst, s...)
	}
	s = valid(s)
	switch styleOf(s) {
	case plain:
		return append(dst, s...)
	case literal:
		return appendBlock(dst, s, indent)
	default:
		return appendQuoted(dst, s)
	}
}

func appendKey(dst []byte, s string) []byte {
	if isName(s) {
		return append(dst, s...)
	}
	s = valid(s)
	if styleOf(s) == plain {
		return append(dst, s...)
	}
	return appendQuoted(dst, s)
}

// isName finds most texts that are plain, at a glance: names, images, paths and flags, of letters, digits and what
// means nothing between them. They are longer than any word and start as no number does.
func isName(s string) bool {
	if len(s) <= longestWord {
		return false
	}
	first := s[0]
	if first == '-' && s[1] == '-' {
		first = s[2]
	}
	if first |= 0x20; first < 'a' || first > 'z' {
		return false
	}
	for i := range len(s) {
		if !inName[s[i]] {
			return false
		}
	}
	return s[len(s)-1] != ':'
}

// inName are the characters of such texts.
var inName = func() (all [256]bool) {
	for _, c := range []byte("-_./:=,@+()$%~^*&!?;0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		all[c] = true
	}
	return all
}()

// valid replaces what is not UTF-8 as encoding/json does: each byte by itself.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// styleOf picks the most readable style that every parser reads back as s.
func styleOf(s string) style {
	if len(s) == 0 {
		return quoted
	}
	multiline, indicator := false, false
	var prev byte = '\n'
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			// IsPrint leaves out the BOM, the line separators and what the eye
			// would miss, such as a zero-width space.
			if !unicode.IsPrint(r) {
				return quoted
			}
			i += size - 1
		case c == '\n':
			if isBlank(prev) {
				return quoted
			}
			multiline = true
		case c == '\t':
			indicator = true
		case c < ' ' || c == 0x7f:
			return quoted
		case c == ':':
			indicator = indicator || i+1 == len(s) || s[i+1] == ' '
		case c == '#':
			indicator = indicator || prev == ' '
		}
		prev = c
	}
	switch {
	case isBlank(prev):
		return quoted
	case multiline && (isBlank(s[0]) || s[0] == '\n'):
		// The first line would set the block's indentation.
		return quoted
	case multiline:
		return literal
	case indicator || !startsPlain(s) || resolves(s):
		return quoted
	}
	return plain
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// startsPlain: YAML gives these characters a meaning at the head of a scalar.
// A dash has it only before a blank, and flags such as --port deserve to stay
// readable.
func startsPlain(s string) bool {
	switch s[0] {
	case '-':
		return len(s) > 1 && s[1] != ' ' && !isMarker(s)
	case '.':
		return !isMarker(s)
	case ' ', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	}
	return true
}

// isMarker: at the left edge these end a document.
func isMarker(s string) bool {
	return len(s) >= 3 && (s[:3] == "---" || s[:3] == "...") &&
		(len(s) == 3 || s[3] == ' ')
}

// appendBlock prints s as a literal block. The indicator after the bar says
// what becomes of the final newlines.
func appendBlock(dst []byte, s string, indent int) []byte {
	dst = append(dst, '|')
	switch {
	case s[len(s)-1] != '\n':
		dst = append(dst, '-')
	case len(s) > 1 && s[len(s)-2] == '\n':
		dst = append(dst, '+')
	}
	s = strings.TrimSuffix(s, "\n")
	for line := range strings.SplitSeq(s, "\n") {
		dst = append(dst, '\n')
		// Blank lines get no indentation: it would be trailing space.
		if len(line) > 0 {
			for range indent {
				dst = append(dst, ' ')
			}
		}
		dst = append(dst, line...)
	}
	return dst
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case unicode.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		case r <= 0xff:
			dst = fmt.Appendf(dst, `\x%02x`, r)
		case r <= 0xffff:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = fmt.Appendf(dst, `\U%08x`, r)
		}
	}
	return append(dst, '"')
}
