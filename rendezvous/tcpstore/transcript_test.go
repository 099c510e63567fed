package tcpstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// step is one direction of one connection.
type step struct {
	line  int
	conn  string
	sent  bool // by the client
	bytes []byte
	end   bool // the client closes
}

var stepLine = regexp.MustCompile(`^\s*(?:[0-9.]+ )?(c[0-9]+)([<>]) (\S+(?: [^| ]\S*)*)`)

// transcript reads what went over the wire: a line is a connection, the direction (> from the client) and bytes in hex.
// In those written by hand "text" stands for a text with its length before it, and #5 for a number of eight bytes.
// Whatever follows two spaces or a bar is for people. What a recording left out ends it.
func transcript(t *testing.T, name string) []step {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var steps []step
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		if strings.HasPrefix(in.Text(), "== big value") {
			break // it is cut short in the recordings
		}
		m := stepLine.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		s := step{line: n, conn: m[1], sent: m[2] == ">"}
		if m[3] == "EOF" {
			if s.end = true; !s.sent {
				continue // it follows from the client's
			}
		} else if s.bytes, err = tokens(m[3]); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		if last := len(steps) - 1; last >= 0 && !s.sent && steps[last].conn == s.conn && !steps[last].sent {
			steps[last].bytes = append(steps[last].bytes, s.bytes...) // one reply in several segments
			continue
		}
		steps = append(steps, s)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 {
		t.Fatalf("%s holds nothing", name)
	}
	return steps
}

func tokens(line string) ([]byte, error) {
	var out []byte
	for _, token := range strings.Fields(line) {
		switch token[0] {
		case '"':
			text := strings.Trim(token, `"`)
			out = append(binary.LittleEndian.AppendUint64(out, uint64(len(text))), text...)
		case '#':
			n, err := strconv.ParseInt(token[1:], 10, 64)
			if err != nil {
				return nil, err
			}
			out = binary.LittleEndian.AppendUint64(out, uint64(n))
		default:
			b, err := hex.DecodeString(token)
			if err != nil {
				return nil, err
			}
			out = append(out, b...)
		}
	}
	return out, nil
}

// start serves from a free port until the test ends.
func start(t *testing.T, change func(*Limits)) (*Server, string) {
	t.Helper()
	return observed(t, change, Observer{})
}

func observed(t *testing.T, change func(*Limits), o Observer) (*Server, string) {
	t.Helper()
	l := DefaultLimits()
	if change != nil {
		change(&l)
	}
	s := New(l, nil, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	// So that nothing hangs.
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// replay plays the clients, with their bytes cut as split says, and compares every byte of the replies.
func replay(t *testing.T, steps []step, split func([]byte) [][]byte) {
	t.Helper()
	s, address := start(t, nil)
	// What torch's own server holds for its clients' whole life is held here by one more client, which waits.
	keeper := dial(t, address)
	const request = "\x05\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00init/"
	if _, err := keeper.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return s.Stats().Waits == 1 })
	conns := map[string]net.Conn{"keeper": keeper}
	for _, st := range steps {
		c := conns[st.conn]
		if c == nil {
			c = dial(t, address)
			conns[st.conn] = c
		}
		switch {
		case st.end:
			_ = c.Close()
		case st.sent:
			for _, part := range split(st.bytes) {
				if _, err := c.Write(part); err != nil {
					t.Fatalf("line %d: %v", st.line, err)
				}
			}
		default:
			got := make([]byte, len(st.bytes))
			if n, err := io.ReadFull(c, got); err != nil {
				t.Fatalf("line %d: got %x: %v", st.line, got[:n], err)
			}
			if diff := cmp.Diff(hex.Dump(st.bytes), hex.Dump(got)); diff != "" && !sameList(st.bytes, got) {
				t.Fatalf("line %d (-want +got):\n%s", st.line, diff)
			}
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
	gone(t, s)
}

// sameList says that two replies are lists of the same keys: torch's come in the order of its hash table.
func sameList(a, b []byte) bool {
	keys := func(b []byte) []string {
		d := NewDecoder(bytes.NewReader(append([]byte{5}, b...)), DefaultLimits().Lengths, nil, nil)
		d.dialect, d.begun = Recent, true
		q, err := d.Next()
		if err != nil {
			return nil
		}
		slices.Sort(q.Keys)
		return q.Keys
	}
	return keys(a) != nil && slices.Equal(keys(a), keys(b))
}

// gone waits until no connection and no key is left.
func gone(t *testing.T, s *Server) {
	t.Helper()
	until(t, func() bool { return s.Stats() == Stats{} })
}

// until waits for what must come true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("it never came true")
		}
	}
}

func whole(b []byte) [][]byte { return [][]byte{b} }

func single(b []byte) [][]byte {
	var out [][]byte
	for i := range b {
		out = append(out, b[i:i+1])
	}
	return out
}

// TestTranscripts replays those that are part of the package, cut at every place.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		steps := transcript(t, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			replay(t, steps, whole)
			replay(t, steps, single)
			longest := 0
			for _, s := range steps {
				longest = max(longest, len(s.bytes))
			}
			for at := 1; at < longest; at++ {
				replay(t, steps, func(b []byte) [][]byte {
					at := min(at, len(b))
					return [][]byte{b[:at], b[at:]}
				})
			}
		})
	}
}

// TestRecordings replays real clients of torch, where recordings of them are beside the checkout.
func TestRecordings(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "traces")
	if named := os.Getenv("TEGEN_TRACES"); named != "" {
		dir = named
	} else if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recordings of torch beside the checkout: nobody has compared the replies with those of torch's " +
			"own server; name their directory in TEGEN_TRACES")
	}
	for _, name := range []string{
		"06_tcpstore_wire.txt", "tcpstore_wire_2.6.txt", "tcpstore_wire_2.14.txt", "c10d_agents_2.6_noshare.txt",
		"c10d_agents_2.14_noshare.txt",
		"tcpstore_wire_worker_2.6.txt", "tcpstore_wire_worker_2.14.txt",
	} {
		steps := transcript(t, filepath.Join(dir, name))
		t.Run(name, func(t *testing.T) {
			t.Run("whole", func(t *testing.T) { replay(t, steps, whole) })
			t.Run("bytes", func(t *testing.T) { replay(t, steps, single) })
		})
	}
}
