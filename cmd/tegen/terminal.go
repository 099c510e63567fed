package main

import (
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// terminal is a writer for what people read: characters that a terminal would obey, or that hide others, are spelled
// out. They come with names of files and objects that somebody else chose.
type terminal struct{ w io.Writer }

func (t terminal) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1: // a byte alone can be a command too
			out = fmt.Appendf(out, `\x%02x`, rest[0])
		case r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			out = append(out, quoted[1:len(quoted)-1]...)
		default:
			out = append(out, rest[:size]...)
		}
		rest = rest[size:]
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printable is a name as it is, or in quotes where it holds anything that could be taken for the text around it.
func printable(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}
