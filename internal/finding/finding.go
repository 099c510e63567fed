// Package finding is what every command says of an input, as data: errors, warnings and notes with their rule, place,
// field, message and remedy. Text is one rendering of it; JSON, SARIF and the annotations of GitHub are the others, and
// each names the same findings. It depends on the standard library alone, so that a browser can have it too.
package finding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Level says what a finding means for who asked.
type Level string

// The levels.
const (
	Error   Level = "error"   // the input is refused, and the command fails
	Warning Level = "warning" // something of the input is lost; import --strict fails with it
	Note    Level = "note"    // nothing is wrong, and somebody should know
)

// Finding is one thing that a command says of its input.
type Finding struct {
	Rule    string `json:"rule"` // one of Rules, or note/<field>
	Level   Level  `json:"level"`
	File    string `json:"file,omitempty"` // as it was named to the command; empty where nobody knows it
	Line    int    `json:"line,omitempty"` // from 1; 0 where only the file is known
	Column  int    `json:"column,omitempty"`
	Object  string `json:"object,omitempty"` // Kind namespace/name
	Field   string `json:"field,omitempty"`  // spec.workers.min
	Message string `json:"message"`          // what is wrong and, mostly, what would be right
	Remedy  string `json:"remedy,omitempty"` // what to do about any finding of this rule

	// Items are the names of the list items along Field, each between spaces; of an item without a name it is "-".
	Items string `json:"-"`
	Text  string `json:"-"` // the line for people, where it is not place, object, field and message
}

// inOneLine keeps a finding in its line: parts of it are names and values that somebody else chose.
var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

func (f Finding) String() string {
	if f.Rule == toolError { // an error of another program may have several lines
		return f.text()
	}
	return inOneLine.Replace(f.text())
}

func (f Finding) text() string {
	if f.Text != "" {
		return f.Text
	}
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		for _, n := range []int{f.Line, f.Column} {
			if n > 0 {
				b.WriteString(":" + strconv.Itoa(n))
			}
		}
		b.WriteString(": ")
	}
	if f.Level == Note {
		b.WriteString("note: ")
	}
	b.WriteString(f.About())
	return b.String()
}

// With is the finding with some words at the end.
func (f Finding) With(words string) Finding {
	f.Message += words
	if f.Text != "" {
		f.Text += words
	}
	return f
}

// About is the finding without its place and level.
func (f Finding) About() string {
	var b strings.Builder
	for _, part := range []string{f.Object, f.Field} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(f.Message)
	return b.String()
}

// List is findings as an error, a line each.
type List []Finding

func (l List) Error() string {
	const most = 1000 // nobody reads on
	var lines []string
	for _, f := range l[:min(len(l), most)] {
		lines = append(lines, f.String())
	}
	if len(l) > most {
		lines = append(lines, fmt.Sprintf("%s: and %d more errors", l[most], len(l)-most-1))
	}
	return strings.Join(lines, "\n")
}

// Findings is the list itself, as of every error that is made of findings.
func (l List) Findings() List { return l }

// Err is the list as an error, nil of none.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Once is the list without what it says twice.
func (l List) Once() (out List) {
	said := map[string]bool{}
	for _, f := range l {
		if line := f.String(); !said[line] {
			said[line] = true
			out = append(out, f)
		}
	}
	return out
}

// Sorted is the list by file, line and column; what has no file comes last.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Finding) int {
		if (a.File == "") != (b.File == "") {
			return strings.Compare(b.File, a.File)
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// toolError is the rule of an error that is not made of findings.
const toolError = "tool/error"

// lister is an error that is made of findings.
type lister interface {
	error
	Findings() List
}

// joined is an error of errors.Join.
type joined interface {
	error
	Unwrap() []error
}

// Of is an error as findings: those that it is made of, or one without a place.
func Of(err error) List {
	list := of(err)
	for i := range list {
		if list[i].Remedy == "" {
			list[i].Remedy = RuleOf(list[i].Rule).Remedy
		}
	}
	return list
}

func of(err error) List {
	var many joined
	var own lister
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		var list List
		var lines []string
		for _, e := range many.Unwrap() {
			list, lines = append(list, of(e)...), append(lines, e.Error())
		}
		if strings.Join(lines, "\n") == many.Error() {
			return within(err, many, list)
		}
	case errors.As(err, &own):
		return within(err, own, slices.Clone(own.Findings()))
	}
	return List{{Rule: toolError, Level: Error, Message: err.Error()}}
}

// within puts the words that an error has around the findings in front of the first of them.
func within(err, inner error, list List) List {
	around, ok := strings.CutSuffix(err.Error(), inner.Error())
	if ok && around != "" && len(list) > 0 {
		f := &list[0]
		f.Text, f.Message = around+f.String(), around+f.Message
	}
	return list
}

var position = lazy.Regexp(`^(.+):([0-9]+):([0-9]+)$`)

// At gives a finding its place, as file:line:col. Where that is a name without a line, the line begins with it, and the
// finding is of that object unless it has one.
func (f Finding) At(place string) Finding {
	m := position().FindStringSubmatch(place)
	if place == "" {
		return f
	}
	if m == nil { // of a job that an overlay renamed, or of the whole overlay
		f.Text = place + ": " + f.String()
		f.Object = cmp.Or(f.Object, place)
		return f
	}
	f.File = m[1]
	f.Line, _ = strconv.Atoi(m[2])
	f.Column, _ = strconv.Atoi(m[3])
	return f
}

var ofField = lazy.Regexp(`^((?:spec|metadata)[^ ]*): `)

// Said is a finding of a text that may begin with its field.
func Said(rule string, level Level, text string) Finding {
	f := Finding{Rule: rule, Level: level, Message: text}
	if m := ofField().FindStringSubmatch(text); m != nil {
		f.Field, f.Message = m[1], text[len(m[0]):]
	}
	return f
}

// Noted is a note about a job. Its rule is that of its field.
func Noted(text string) Finding {
	f := Said("note/job", Note, text)
	if f.Field != "" {
		f.Rule = "note/" + inBrackets().ReplaceAllString(strings.TrimPrefix(f.Field, "spec."), "")
	}
	return f
}

var inBrackets = lazy.Regexp(`\[[^\]]*\]`)
