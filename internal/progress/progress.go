// Package progress tells who waits at a terminal that a command is at work: one line, once it has taken two seconds,
// which is gone when the command prints anything or ends.
//
// Input: the process's own streams, and what the command is at.
// Output: a line on standard error, if that is a terminal of a person; nothing in a pipe, in CI, or where TERM is dumb.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// After is how long a command may take without a word.
	After = 2 * time.Second

	every = 500 * time.Millisecond
	erase = "\r\x1b[K"
)

// Line is the line of a command. That of nil is never shown.
type Line struct {
	out   *os.File
	name  string
	start time.Time
	stop  chan struct{}

	mu    sync.Mutex
	doing func() string
	shown bool
	ended bool
}

// Start begins to wait. name is the command's, and env its environment.
func Start(stderr io.Writer, env func(string) string, name string, after time.Duration) *Line {
	out, ok := stderr.(*os.File)
	if kind := env("TERM"); !ok || kind == "" || kind == "dumb" || env("CI") != "" || !isTerminal(out) {
		return nil
	}
	l := &Line{out: out, name: name, start: time.Now(), stop: make(chan struct{})}
	go l.run(after)
	return l
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

func (l *Line) run(after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-timer.C:
			l.show()
			timer.Reset(every)
		}
	}
}

// show writes the line and leaves the cursor at its beginning, so that whatever comes after a signal covers it.
func (l *Line) show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	text := fmt.Sprintf("%s: %d s", l.name, int(time.Since(l.start).Seconds()))
	if l.doing != nil {
		text += ", " + l.doing()
	}
	if width, _, err := term.GetSize(int(l.out.Fd())); err == nil && width > 0 {
		if runes := []rune(text); len(runes) >= width { // a second line would stay
			text = string(runes[:width-1])
		}
	}
	_, _ = fmt.Fprint(l.out, erase, text, "\r") // who waits misses no more than this
	l.shown = true
}

// Doing says what the command is at. what is asked each time that the line is shown.
func (l *Line) Doing(what func() string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doing = what
}

// End erases the line for good.
func (l *Line) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.stop)
	if l.shown {
		_, _ = fmt.Fprint(l.out, erase)
	}
}

// Writer returns a stream whose first byte ends the line, if both are on a terminal.
func (l *Line) Writer(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if l == nil || !ok || !isTerminal(file) {
		return w
	}
	return stream{file, l}
}

// Reader returns a stream that ends the line before a person types.
func (l *Line) Reader(r io.Reader) io.Reader {
	file, ok := r.(*os.File)
	if l == nil || !ok || !isTerminal(file) {
		return r
	}
	return stream{file, l}
}

// stream is a terminal.
type stream struct {
	*os.File
	line *Line
}

func (s stream) Write(text []byte) (int, error) {
	s.line.End()
	return s.File.Write(text)
}

// WriteString is Write, in place of the file's own.
func (s stream) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

// ReadFrom is Write, in place of the file's own.
func (s stream) ReadFrom(r io.Reader) (int64, error) {
	s.line.End()
	return s.File.ReadFrom(r)
}

func (s stream) Read(text []byte) (int, error) {
	s.line.End()
	return s.File.Read(text)
}
