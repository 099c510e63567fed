package store

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestReconnects: a client of a store that is away tries again soon. By gRPC's own back-off, which grows to 2 minutes,
// a store that had been away for 46 s was back for 25 s before its clients noticed.
func TestReconnects(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var attempts atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			attempts.Add(1)
			_ = c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if s, err := (External{Endpoints: []string{l.Addr().String()}}).Open(ctx); err == nil {
		_ = s.Close()
		t.Fatal("a listener that closes every connection was taken for etcd")
	}
	if n := attempts.Load(); n < 10 { // gRPC's own back-off makes 6
		t.Errorf("the client connected %d times in 3 s: want at least 10", n)
	}
}
