package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestReaders: clients that ask for much and never read it cost no more than what may be under way, and keep nobody
// else waiting. That they are cut off is a test of keys.
func TestReaders(t *testing.T) {
	t.Parallel()
	p := serve(t, "--data-dir", t.TempDir())
	value := strings.Repeat("x", 50_000)
	for i := range 400 { // 20 MB
		code, body := ask(t, http.MethodPut, p.client, "/v2/keys/many/"+strconv.Itoa(i), "value", value)
		expect(t, http.StatusCreated, code, body)
	}
	for range 100 {
		c, err := net.Dial("tcp", p.client)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "GET /v2/keys/many?recursive=true HTTP/1.1\r\nHost: %s\r\n\r\n",
			p.client); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		begin := time.Now()
		code, body := ask(t, http.MethodPut, p.client, "/v2/keys/many/0", "value", value)
		expect(t, http.StatusOK, code, body)
		if took := time.Since(begin); took > 8*time.Second { // of a machine that does other things
			t.Errorf("another client waited for %s", took)
		}
		if now := resident(t, p.cmd.Process.Pid); now > 256<<20 {
			t.Fatalf("it takes %d MiB", now>>20)
		}
	}
}

// TestReadersOfWrites: the same of writes, which are answered with the value that is there.
func TestReadersOfWrites(t *testing.T) {
	t.Parallel()
	p := serve(t, "--data-dir", t.TempDir())
	code, body := ask(t, http.MethodPut, p.client, "/v2/keys/big", "value", strings.Repeat("z", 1_000_000))
	expect(t, http.StatusCreated, code, body)
	before := resident(t, p.cmd.Process.Pid)
	for range 150 {
		c, err := net.Dial("tcp", p.client)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "PUT /v2/keys/big?prevValue=q&value=w HTTP/1.1\r\nHost: %s\r\nContent-Length: "+
			"0\r\n\r\n", p.client); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if more := resident(t, p.cmd.Process.Pid) - before; more > 160<<20 { // twice, and the collector's as much
			t.Fatalf("it takes %d MiB more, of 64 that answers may take", more>>20)
		}
	}
}

// resident is the memory of a process and of those it has started.
func resident(t *testing.T, pid int) (all int) {
	t.Helper()
	for _, pid := range append(children(t, pid), pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			t.Fatal(err)
		}
		pages, err := strconv.Atoi(strings.Fields(string(text))[1])
		if err != nil {
			t.Fatal(err)
		}
		all += pages * os.Getpagesize()
	}
	return all
}
