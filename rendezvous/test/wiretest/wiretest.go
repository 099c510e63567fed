// Package wiretest plays transcripts of torch's clients to a TCPStore server, for the tests of all that are one: a line
// is what went over one connection in one direction.
package wiretest

import (
	"bufio"
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

// Step is one direction of one connection.
type Step struct {
	Line  int
	Conn  string
	Sent  bool // by the client
	Bytes []byte
	End   bool // the client closes
}

var stepLine = regexp.MustCompile(`^\s*(?:[0-9.]+ )?(c[0-9]+)([<>]) (\S+(?: [^| ]\S*)*)`)

// Transcript reads what went over the wire: a line is a connection, the direction (> from the client) and bytes in hex.
// In those written by hand "text" stands for a text with its length before it, and #5 for a number of eight bytes.
// Whatever follows two spaces or a bar is for people. What a recording left out ends it.
func Transcript(t testing.TB, name string) []Step {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var steps []Step
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
		s := Step{Line: n, Conn: m[1], Sent: m[2] == ">"}
		if m[3] == "EOF" {
			if s.End = true; !s.Sent {
				continue // it follows from the client's
			}
		} else if s.Bytes, err = Tokens(m[3]); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		if last := len(steps) - 1; last >= 0 && !s.Sent && steps[last].Conn == s.Conn && !steps[last].Sent {
			steps[last].Bytes = append(steps[last].Bytes, s.Bytes...) // one reply in several segments
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

// Tokens are the bytes of a line as transcripts have it.
func Tokens(line string) ([]byte, error) {
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

// Dial connects for as long as the test takes.
func Dial(t *testing.T, address string) net.Conn {
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

// Replay plays the clients, with their bytes cut as split says, and compares every byte of the replies. It closes the
// connections.
func Replay(t *testing.T, address string, steps []Step, split func([]byte) [][]byte) {
	t.Helper()
	conns := map[string]net.Conn{}
	for _, st := range steps {
		c := conns[st.Conn]
		if c == nil {
			c = Dial(t, address)
			conns[st.Conn] = c
		}
		switch {
		case st.End:
			_ = c.Close()
		case st.Sent:
			for _, part := range split(st.Bytes) {
				if _, err := c.Write(part); err != nil {
					t.Fatalf("line %d: %v", st.Line, err)
				}
			}
		default:
			got := make([]byte, len(st.Bytes))
			if n, err := io.ReadFull(c, got); err != nil {
				t.Fatalf("line %d: got %x: %v", st.Line, got[:n], err)
			}
			if diff := cmp.Diff(hex.Dump(st.Bytes), hex.Dump(got)); diff != "" && !sameList(st.Bytes, got) {
				t.Fatalf("line %d (-want +got):\n%s", st.Line, diff)
			}
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

// Recordings are the files with what real clients of torch sent, where they are beside the checkout.
func Recordings(t *testing.T, checkout string) (files []string) {
	t.Helper()
	dir := filepath.Join(checkout, "..", "shared", "traces")
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
		files = append(files, filepath.Join(dir, name))
	}
	return files
}

// sameList says that two replies are lists of the same keys: torch's come in the order of its hash table.
func sameList(a, b []byte) bool {
	keys := func(b []byte) (all []string) {
		field := func() uint64 {
			if len(b) < 8 {
				return 1 << 20 // more than any reply has
			}
			n := binary.LittleEndian.Uint64(b)
			b = b[8:]
			return n
		}
		for range min(field(), 1<<20) {
			n := field()
			if n > uint64(len(b)) {
				return nil
			}
			all, b = append(all, string(b[:n])), b[n:]
		}
		slices.Sort(all)
		return all
	}
	return keys(a) != nil && slices.Equal(keys(a), keys(b))
}

// Whole sends as it was recorded.
func Whole(b []byte) [][]byte { return [][]byte{b} }

// Single sends byte by byte.
func Single(b []byte) [][]byte {
	var out [][]byte
	for i := range b {
		out = append(out, b[i:i+1])
	}
	return out
}
