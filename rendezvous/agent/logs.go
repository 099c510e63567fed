package agent

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// files is where a run's log and error files are: <dir>/attempt_<restarts>/<local rank>/, as torchrun has it.
type files struct {
	Logs
	dir  string
	temp bool // dir is ours to remove
	mu   sync.Mutex
}

func newFiles(logs Logs, runID string) (*files, error) {
	f := &files{Logs: logs, temp: logs.Dir == ""}
	base := logs.Dir
	var err error
	if f.temp {
		if base, err = os.MkdirTemp("", "torchelastic_"); err != nil {
			return nil, fmt.Errorf("making a directory for error files: %w", err)
		}
	}
	name := strings.ReplaceAll(runID, string(filepath.Separator), "_")
	f.dir = filepath.Join(base, name+"_"+strings.ToLower(rand.Text()[:8]))
	if err = os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of logs: %w", err)
	}
	return f, nil
}

// close removes temporary files. After a failure error files are kept: its message names one.
func (f *files) close(all bool) {
	if f.temp && all && f.Redirects.none() && f.Tee.none() {
		_ = os.RemoveAll(filepath.Dir(f.dir))
	}
}

// place is the files of one worker.
type place struct{ stdout, stderr, errorFile string }

// attempt makes a worker's directory. After a change of the membership it exists: logs are continued, an old error is
// none of the new worker's.
func (f *files) attempt(restarts, local int) (place, error) {
	dir := filepath.Join(f.dir, "attempt_"+strconv.Itoa(restarts), strconv.Itoa(local))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return place{}, fmt.Errorf("making a worker's directory: %w", err)
	}
	p := place{filepath.Join(dir, "stdout.log"), filepath.Join(dir, "stderr.log"), filepath.Join(dir, "error.json")}
	if err := os.Remove(p.errorFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return place{}, fmt.Errorf("removing an old error file: %w", err)
	}
	return p, nil
}

// output copies one worker's two streams to files and to the agent's own streams.
type output struct {
	stdout, stderr *os.File   // what the worker writes to
	ours           []*os.File // closed once it has them
	reads          []*os.File
	done           sync.WaitGroup
}

func (f *files) open(w *worker, role string, p place) (*output, error) {
	o := &output{}
	prefix := strings.NewReplacer("${rank}", strconv.Itoa(w.rank), "${local_rank}", strconv.Itoa(w.local),
		"${role_name}", role).Replace(f.Prefix)
	var err error
	if o.stdout, err = f.stream(o, w.local, streamOut, p.stdout, prefix, f.Out); err == nil {
		o.stderr, err = f.stream(o, w.local, streamErr, p.stderr, prefix, f.Err)
	}
	if err != nil {
		o.started()
		o.wait(0)
		return nil, err
	}
	return o, nil
}

// stream creates one of a worker's streams: a file where it goes nowhere else, otherwise a pipe that is read.
func (f *files) stream(o *output, local int, s stream, name, prefix string, console io.Writer) (*os.File, error) {
	redirect, tee := f.Redirects.has(local, s), f.Tee.has(local, s)
	var file *os.File
	if redirect || tee {
		var err error
		if file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, fmt.Errorf("opening a log file: %w", err)
		}
	}
	if redirect && !tee {
		o.ours = append(o.ours, file)
		return file, nil
	}
	if f.Show != nil && !f.Show(local) {
		console = io.Discard
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe for a worker's output: %w", err)
	}
	o.ours, o.reads = append(o.ours, write), append(o.reads, read)
	var copied io.Writer // not a nil *os.File
	if tee {
		copied = file
	}
	o.done.Go(func() {
		lines := &lineWriter{mu: &f.mu, to: console, prefix: []byte(prefix)}
		pump(read, copied, lines)
		lines.end()
		_ = read.Close()
		if tee {
			_ = file.Close()
		}
	})
	return write, nil
}

// pump copies until the pipe ends. What cannot be written is lost: a worker must never wait for a full disk.
func pump(from io.Reader, file, console io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if file != nil {
			_, _ = file.Write(buf[:n])
		}
		_, _ = console.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// started closes the worker's ends of its pipes, so that its exit is seen.
func (o *output) started() {
	for _, f := range o.ours {
		_ = f.Close() // nothing of ours is in it
	}
}

// wait waits until all output has been read. Processes that keep the streams open lose them after d.
func (o *output) wait(limit time.Duration) {
	for _, f := range o.reads {
		_ = f.SetReadDeadline(time.Now().Add(limit))
	}
	o.done.Wait()
}

const (
	lineMax = 64 << 10    // bytes; a longer line is shown as several
	barPace = time.Second // how often a line that a carriage return keeps rewriting is shown
)

// lineWriter writes whole lines with a prefix, each in one Write. All writers that share mu take turns.
type lineWriter struct {
	mu     *sync.Mutex
	to     io.Writer
	prefix []byte
	buf    []byte // a line without an end yet
	shown  time.Time
}

// Write keeps what is not a whole line yet. It never fails: a worker must not end because nobody reads.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.buf = append(l.buf, p...)
	for {
		i := bytes.IndexByte(l.buf, '\n')
		switch {
		case i >= 0 && i < lineMax:
			l.line(l.buf[:i])
			l.buf = l.buf[i+1:]
		case len(l.buf) >= lineMax:
			n := cut(l.buf[:lineMax])
			l.line(l.buf[:n])
			l.buf = l.buf[n:]
		default:
			l.bar()
			l.buf = append([]byte(nil), l.buf...) // gives back what has been written
			return len(p), nil
		}
	}
}

// bar shows a progress bar now and then: its line may not end for hours. The states between are not shown, as each
// would be a line.
func (l *lineWriter) bar() {
	i := bytes.LastIndexByte(bytes.TrimRight(l.buf, "\r"), '\r') // one at the very end may be of a \r\n
	if i <= 0 {
		return
	}
	if now := time.Now(); now.Sub(l.shown) >= barPace {
		l.shown = now
		l.line(l.buf[:i])
	}
	l.buf = l.buf[i:]
}

// line writes one, of a line that carriage returns rewrite its last state as a terminal would show it.
func (l *lineWriter) line(text []byte) {
	text = bytes.TrimRight(text, "\r")
	if i := bytes.LastIndexByte(text, '\r'); i >= 0 {
		text = text[i+1:]
	}
	whole := make([]byte, 0, len(l.prefix)+len(text)+1)
	whole = append(append(append(whole, l.prefix...), text...), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(whole)
}

// end writes a last line that nothing ended.
func (l *lineWriter) end() {
	if len(l.buf) > 0 {
		l.line(l.buf)
		l.buf = nil
	}
}

// cut is the length of text without a letter that is not whole.
func cut(text []byte) int {
	for n := len(text); n > len(text)-utf8.UTFMax; n-- {
		if r, _ := utf8.DecodeLastRune(text[:n]); r != utf8.RuneError {
			return n
		}
	}
	return len(text)
}
