package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// screen is a terminal, and what was written to it.
type screen struct {
	*testing.T
	tty  *os.File
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

// await waits for a text, and returns all that there is then.
func (s *screen) await(want string) string {
	s.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
	}
	s.Fatalf("no %q in %q", want, s.text.String())
	return ""
}

func newScreen(t *testing.T, columns uint16) *screen {
	t.Helper()
	mine, tty, err := pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skipf("there are no terminals of this kind on %s", runtime.GOOS)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(mine, &pty.Winsize{Rows: 5, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	s := &screen{T: t, tty: tty}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, mine) // it ends with the terminal, as an error
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		<-read
		_ = mine.Close()
	})
	return s
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestLine: a line comes, says what the command is at, and is gone before the first byte of the command's own.
func TestLine(t *testing.T) {
	s := newScreen(t, 40)
	l := Start(s.tty, env("TERM", "xterm"), "tegen plan", 0)
	l.Doing(func() string { return "reading 世界" })
	s.await(erase + "tegen plan: 0 s")
	s.await("s, reading 世界\r")
	l.Doing(func() string { return strings.Repeat("x", 100) })
	s.await("xxx\r")
	if _, err := fmt.Fprintln(l.Writer(s.tty), "a note"); err != nil {
		t.Fatal(err)
	}
	text := s.await("a note")
	if !strings.Contains(text, erase+"a note") || strings.Contains(text, strings.Repeat("x", 40)) {
		t.Errorf("%q", text)
	}
	l.show()
	l.End()
	if _, err := fmt.Fprintln(s.tty, "end"); err != nil {
		t.Fatal(err)
	}
	if after := s.await("end"); len(after) != len(text)+len("\r\nend") && !strings.Contains(after, "a note\r\nend") {
		t.Errorf("after the note: %q", after)
	}
}

// TestLineNotYet: a command that ends in time leaves nothing.
func TestLineNotYet(t *testing.T) {
	s := newScreen(t, 80)
	l := Start(s.tty, env("TERM", "xterm"), "tegen", time.Hour)
	l.End()
	if _, err := fmt.Fprint(s.tty, "end"); err != nil {
		t.Fatal(err)
	}
	if text := s.await("end"); text != "end" {
		t.Errorf("%q", text)
	}
}

// TestLineTyping: a line goes before somebody types into the command.
func TestLineTyping(t *testing.T) {
	s := newScreen(t, 80)
	l := Start(s.tty, env("TERM", "xterm"), "tegen", 0)
	s.await("tegen: 0 s\r")
	in := l.Reader(s.tty)
	if in == io.Reader(s.tty) {
		t.Fatal("the terminal is read as it is")
	}
	l.End() // as a Read does, which here would wait for ever
	s.await("\r" + erase)
}

// TestNoLine: no line where nobody looks, and streams stay what they are.
func TestNoLine(t *testing.T) {
	s := newScreen(t, 80)
	_, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	for name, l := range map[string]*Line{
		"pipe":      Start(pipe, env("TERM", "xterm"), "tegen", 0),
		"buffer":    Start(&bytes.Buffer{}, env("TERM", "xterm"), "tegen", 0),
		"dumb":      Start(s.tty, env("TERM", "dumb"), "tegen", 0),
		"no TERM":   Start(s.tty, env(), "tegen", 0),
		"CI":        Start(s.tty, env("TERM", "xterm", "CI", "true"), "tegen", 0),
		"CI, by 1":  Start(s.tty, env("TERM", "xterm", "CI", "1"), "tegen", 0),
		"CI, false": Start(s.tty, env("TERM", "xterm", "CI", "false"), "tegen", 0),
	} {
		if l != nil {
			t.Errorf("%s: there is a line", name)
		}
		l.Doing(nil)
		l.End()
		if l.Writer(s.tty) != io.Writer(s.tty) || l.Reader(s.tty) != io.Reader(s.tty) {
			t.Errorf("%s: streams are wrapped", name)
		}
	}
	l := Start(s.tty, env("TERM", "xterm"), "tegen", time.Hour)
	defer l.End()
	if l.Writer(pipe) != io.Writer(pipe) { // render > FILE: the line stays while the file is written
		t.Error("a pipe is wrapped")
	}
}
