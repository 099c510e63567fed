package proxystore

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// peer is a client of a pod, as torch's are.
type peer struct {
	t *testing.T
	net.Conn
}

// dial connects, and says what it speaks.
func (p pod) dial(t *testing.T) peer {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a := peer{t, c}
	a.write([]byte("\x00\xce\xf7\x85\x3c"))
	return a
}

// soon is a deadline so that nothing hangs, from each word on: how many there are a test decides.
func (a peer) soon() {
	if err := a.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		a.t.Error(err)
	}
}

// write may be called beside the test's own goroutine.
func (a peer) write(b []byte) {
	a.soon()
	if _, err := a.Write(b); err != nil {
		a.t.Error(err)
	}
}

func text(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func number(b []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// say sends an operation with a key and values.
func (a peer) say(op tcpstore.Op, key string, values ...string) {
	b := text([]byte{byte(op)}, key)
	for _, v := range values {
		b = text(b, v)
	}
	a.write(b)
}

// list sends an operation with keys, or pairs.
func (a peer) list(op tcpstore.Op, count int, words ...string) {
	b := number([]byte{byte(op)}, int64(count))
	for _, w := range words {
		b = text(b, w)
	}
	a.write(b)
}

func (a peer) bytes(n int) []byte {
	b := make([]byte, n)
	a.soon()
	if _, err := io.ReadFull(a, b); err != nil {
		a.t.Errorf("reading a reply: %v", err)
	}
	return b
}

func (a peer) value() string {
	n := binary.LittleEndian.Uint64(a.bytes(8))
	if n > 1<<24 {
		a.t.Errorf("a value of %d bytes", n)
		return ""
	}
	return string(a.bytes(int(n)))
}

func (a peer) number() int64 { return int64(binary.LittleEndian.Uint64(a.bytes(8))) }

func (a peer) add(key string, n int64) int64 {
	a.write(number(text([]byte{byte(tcpstore.Add)}, key), n))
	return a.number()
}

func (a peer) swap(key, expected, v string) string {
	a.say(tcpstore.CompareSet, key, expected, v)
	return a.value()
}

func (a peer) get(key string) string {
	a.say(tcpstore.Get, key)
	return a.value()
}

func (a peer) remove(key string) int64 {
	a.say(tcpstore.DeleteKey, key)
	return a.number()
}

func (a peer) wait(keys ...string) { a.list(tcpstore.Wait, len(keys), keys...) }

func (a peer) barrier(key string, n int64) {
	a.write(number(text([]byte{byte(tcpstore.Barrier)}, key), n))
}

// status fails the test where another comes.
func (a peer) status(want byte) {
	a.t.Helper()
	if got := a.bytes(1)[0]; got != want {
		a.t.Fatalf("got status %d, want %d", got, want)
	}
}

// cut waits until the server has closed the connection.
func (a peer) cut() {
	a.t.Helper()
	a.soon()
	var timeout net.Error
	if _, err := io.ReadAll(a); errors.As(err, &timeout) && timeout.Timeout() {
		a.t.Fatal("it is still open")
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
