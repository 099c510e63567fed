package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLateRoom: a write that waits for room has its time for the body from when there is room, and is not ended by the
// time that its body had.
func TestLateRoom(t *testing.T) {
	t.Parallel()
	const length = 20_000 // of which one at a time has room
	s := begin(t, func(c *Config) { c.Keys.MaxAnswer = 64 << 10 })
	begin := func(key string) net.Conn {
		c, err := net.Dial("tcp", s.Address(doorKeys))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "PUT /v2/keys/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
			"Content-Length: %d\r\n\r\n", key, s.Address(doorKeys), length)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c net.Conn) {
		t.Helper()
		if _, err := fmt.Fprint(c, "value="+strings.Repeat("x", length-len("value="))); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusCreated {
			t.Errorf("it was answered %s", r.Status)
		}
	}
	first := begin("a")
	time.Sleep(100 * time.Millisecond)
	second := begin("b")
	time.Sleep(headerTimeout * 6 / 10)
	end(first)
	time.Sleep(headerTimeout * 5 / 10)
	end(second)
}
