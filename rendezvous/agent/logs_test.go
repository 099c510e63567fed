package agent

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func written(chunks ...string) string {
	var out bytes.Buffer
	l := &lineWriter{mu: &sync.Mutex{}, to: &out, prefix: []byte("[3] ")}
	for _, c := range chunks {
		_, _ = l.Write([]byte(c))
	}
	l.end()
	return out.String()
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"none":                   {nil, ""},
		"several at once":        {[]string{"a\nb\n\nc\n"}, "[3] a\n[3] b\n[3] \n[3] c\n"},
		"torn":                   {[]string{"a", "b\nc", "d\n"}, "[3] ab\n[3] cd\n"},
		"a last one without end": {[]string{"a\nb"}, "[3] a\n[3] b\n"},
		"as Windows ends them":   {[]string{"a\r\nb\r", "\n"}, "[3] a\n[3] b\n"},
		"a bar, shown at once":   {[]string{" 1%\r", " 2%"}, "[3]  1%\n[3]  2%\n"},
		"a bar's states in haste": {
			[]string{" 1%", "\r 2%", "\r 3%", "\r 4%", "\r100%\nend\n"},
			"[3]  1%\n[3] 100%\n[3] end\n",
		},
	} {
		if diff := cmp.Diff(c.want, written(c.chunks...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLongLinesAreBounded(t *testing.T) {
	text := strings.Repeat("ü", 100_000)
	var joined strings.Builder
	for line := range strings.Lines(written("x"+text[:70_001], text[70_001:]+"\nshort\n")) {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "[3] "), "\n")
		if len(line) > lineMax || !utf8.ValidString(line) {
			t.Errorf("a line of %d bytes, valid %t", len(line), utf8.ValidString(line))
		}
		joined.WriteString(line)
	}
	if got := joined.String(); got != "x"+text+"short" {
		t.Errorf("%d bytes came through of %d", len(got), len(text)+6)
	}
	binary := strings.Repeat("\xff", 3*lineMax)
	if got := strings.Count(written(binary), "\xff"); got != len(binary) {
		t.Errorf("%d bytes of no text came through of %d", got, len(binary))
	}
}

// Lines of many workers come into one stream: each stays whole, with its own prefix.
func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, letter := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			l := &lineWriter{mu: &mu, to: &out, prefix: []byte(letter + " ")}
			text := []byte(strings.Repeat(strings.Repeat(letter, 300)+"\n", 200))
			for len(text) > 0 {
				n := min(len(text), 77)
				_, _ = l.Write(text[:n])
				text = text[n:]
			}
			l.end()
		})
	}
	all.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 800 {
		t.Errorf("%d lines, want 800", len(lines))
	}
	for _, line := range lines {
		if letter := line[:1]; line != letter+" "+strings.Repeat(letter, 300) {
			t.Fatalf("a torn line: %s", line)
		}
	}
}

func TestParseStreams(t *testing.T) {
	for text, want := range map[string][4]stream{ // of local ranks 0 to 3
		"0": {}, "1": {1, 1, 1, 1}, "3": {3, 3, 3, 3}, "0:1,2:3": {1, 0, 3, 0}, "1:2": {0, 2, 0, 0},
	} {
		s, err := ParseStreams(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var got [4]stream
		for local := range got {
			for _, one := range []stream{streamOut, streamErr} {
				if s.has(local, one) {
					got[local] |= one
				}
			}
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "4", "-1", "a", "0:", "0:4", "-1:3", "0:1,2", "0:1,"} {
		if _, err := ParseStreams(text); err == nil {
			t.Errorf("%q has been taken", text)
		}
	}
}

func TestLogFiles(t *testing.T) {
	f, err := newFiles(Logs{Dir: t.TempDir(), Out: io.Discard, Err: io.Discard}, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(f.dir); !strings.HasPrefix(name, "a_b_") {
		t.Errorf("the run's directory is called %s", name)
	}
	p, err := f.attempt(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(f.dir, "attempt_2", "1", "error.json"); p.errorFile != want {
		t.Errorf("error file %s, want %s", p.errorFile, want)
	}
	if err := os.WriteFile(p.errorFile, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.attempt(2, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.errorFile); !os.IsNotExist(err) {
		t.Errorf("the error file of an earlier world is still there: %v", err)
	}
}
