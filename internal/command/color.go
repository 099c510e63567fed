package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// colorMode is the value of --color.
type colorMode string

var colorModes = []string{"auto", "always", "never"}

// Set, String and Type make it a flag's value, which refuses others when the command line is read.
func (m *colorMode) Set(text string) error {
	if !slices.Contains(colorModes, text) {
		return fmt.Errorf("must be auto, always or never%s", spelling.Suggest(text, colorModes))
	}
	*m = colorMode(text)
	return nil
}

func (m *colorMode) String() string { return string(*m) }

// Type is the word for the value in the help.
func (m *colorMode) Type() string { return "when" }

const colorFlag = "color"

// withColor adds the flag to a command and all below it. Without a value it is always, as with git and ls.
func withColor(cmd *cobra.Command) *cobra.Command {
	mode := colorMode("auto")
	cmd.PersistentFlags().Var(&mode, colorFlag, "color of what people read: auto, always or never; auto is for a "+
		"terminal, unless NO_COLOR is set or TERM is dumb")
	cmd.PersistentFlags().Lookup(colorFlag).NoOptDefVal = "always"
	complete(cmd, colorFlag, colorModes...)
	return cmd
}

// painter colors whole lines on their way to a terminal. What is written must hold no control characters of others.
type painter struct {
	w    io.Writer
	mode fmt.Stringer // the flag's value
}

func (p painter) Write(text []byte) (int, error) {
	if !p.colors() {
		return p.w.Write(text)
	}
	var out []byte
	for line := range bytes.Lines(text) {
		out = append(out, paint(line)...)
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// colors says whether the output is colored: under auto only where it is a terminal that can show it.
func (p painter) colors() bool {
	if mode := p.mode.String(); mode != "auto" {
		return mode == "always"
	}
	file, ok := p.w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd())) && wantsColor(os.Getenv, runtime.GOOS)
}

// wantsColor is what the environment says of colors. A console of Windows shows them where it says what it is.
func wantsColor(env func(string) string, system string) bool {
	name := env("TERM")
	if env("NO_COLOR") != "" || name == "dumb" {
		return false
	}
	return name != "" || system == "windows" && env("WT_SESSION") != ""
}

// Colors, as sequences of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	green  = "\x1b[1;32m"
	cyan   = "\x1b[36m"
	plainT = "\x1b[0m"
)

// Parts of a line that are colored: the place in a file, the word of a note, and what an import became of.
var (
	atPlace   = lazy.Regexp(`^(?:tegen|.+?:[0-9]+(?::[0-9]+)?):`)
	noteWord  = lazy.Regexp(`^ ?note:`)
	fieldPath = lazy.Regexp(`^ (?:apiVersion|kind|metadata|spec)[^ :]*:`)
	verdicts  = lazy.Regexp(`: (?:(dropped|changed|unread)|(error|refused)|(translated|added|beside|warning)):`)
	heading   = lazy.Regexp(`^(?:[A-Z]+ )*[A-Z]+$`)
	fitYes    = lazy.Regexp(`^FIT  (yes|no)\b`)
)

// paint colors a line of what commands print for people.
func paint(line []byte) []byte {
	text := bytes.TrimRight(line, "\n")
	end := line[len(text):]
	var out []byte
	add := func(color string, n int) {
		out = append(append(append(out, color...), text[:n]...), plainT...)
		text = text[n:]
	}
	if m := fitYes().FindSubmatch(text); m != nil {
		color := green
		if string(m[1]) == "no" {
			color = red
		}
		add(color, len(m[0]))
		return append(append(out, text...), end...)
	}
	if heading().Match(text) {
		add(bold, len(text))
		return append(out, end...)
	}
	if m := atPlace().Find(text); m != nil {
		add(bold, len(m))
	}
	switch note, field := noteWord().Find(text), fieldPath().Find(text); {
	case note != nil:
		add(cyan, len(note))
	case field != nil && len(out) > 0:
		add(red, len(field))
	default:
		if m := verdicts().FindSubmatchIndex(text); m != nil {
			out = append(out, text[:m[0]+2]...)
			n := m[1] - m[0] - 2
			text = text[m[0]+2:]
			for group, color := range []string{yellow, red, cyan} {
				if m[2+2*group] >= 0 {
					add(color, n)
				}
			}
		}
	}
	return append(append(out, text...), end...)
}
