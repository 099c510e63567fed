package server

import (
	"bufio"
	"fmt"
	"io"
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
		c, err := net.Dial("tcp", s.Address(apiKeys))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "PUT /v2/keys/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: "+
			"application/x-www-form-urlencoded\r\n"+
			"Content-Length: %d\r\n\r\n", key, s.Address(apiKeys), length)
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

// TestDeafClients: clients that ask for much and never read are cut off, so that somebody who reads is answered.
func TestDeafClients(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) { c.Keys.MaxAnswer, c.Keys.ClientTimeout = 64<<20, time.Second })
	const values = 20 // of 1 MB each, of which there is room for one listing at a time
	value := strings.Repeat("x", 1_000_000)
	for i := range values {
		if code := put(t, s, fmt.Sprintf("/many/%d", i), "value="+value); code != http.StatusCreated {
			t.Fatal(code)
		}
	}
	for range 20 {
		c, err := net.Dial("tcp", s.Address(apiKeys))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "GET /v2/keys/many?recursive=true HTTP/1.1\r\nHost: "+
			"localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.Get("http://" + s.Address(apiKeys) + "/v2/keys/many?recursive=true")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err == nil && r.StatusCode == http.StatusOK && strings.Count(string(body), value) == values {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it is answered %s, %v", r.Status, err)
		}
	}
}
