package command

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// terminal is a writer for what people read: characters that a terminal would obey, or that hide others, are spelled
// out. They come with names of files and objects that somebody else chose.
type terminal struct {
	w        io.Writer
	commands bool // lines that begin with :: are meant to be commands of a workflow
}

func (t terminal) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		// GitHub obeys such a line in the log of a step, whoever wrote it.
		case !t.commands && r == ':' && bytes.HasPrefix(rest, []byte("::")) && beginsLine(out):
			out = append(out, `\x3a`...)
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

// beginsLine reports whether only blanks precede what follows a text in its line.
func beginsLine(text []byte) bool {
	text = bytes.TrimRight(text, " \t")
	return len(text) == 0 || text[len(text)-1] == '\n'
}

// oneLine is an error whose text stays in its line: parts of it are somebody else's.
type oneLine struct{ error }

func (e oneLine) Error() string { return inOneLine.Replace(e.error.Error()) }

func (e oneLine) Unwrap() error { return e.error }

var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// printable is a name as it is, or in quotes where it holds anything that could be taken for the text around it.
func printable(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}
