package tcpstore

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/test/wiretest"
)

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

// replay plays the clients to a server of their own.
func replay(t *testing.T, steps []wiretest.Step, split func([]byte) [][]byte) {
	t.Helper()
	s, address := start(t, nil)
	// What torch's own server holds for its clients' whole life is held here by one more client, which waits.
	keeper := wiretest.Dial(t, address)
	const request = "\x05\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00init/"
	if _, err := keeper.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return s.Stats().Waits == 1 })
	wiretest.Replay(t, address, steps, split)
	_ = keeper.Close()
	gone(t, s)
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

// TestTranscripts replays those that are part of the package, cut at every place.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		steps := wiretest.Transcript(t, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			replay(t, steps, wiretest.Whole)
			replay(t, steps, wiretest.Single)
			longest := 0
			for _, s := range steps {
				longest = max(longest, len(s.Bytes))
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
	for _, name := range wiretest.Recordings(t, "../..") {
		steps := wiretest.Transcript(t, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Run("whole", func(t *testing.T) { replay(t, steps, wiretest.Whole) })
			t.Run("bytes", func(t *testing.T) { replay(t, steps, wiretest.Single) })
		})
	}
}
